// What the words of the API mean, for people who did not read the contract.

const WORDS = {
  pending: {label: 'waiting', explanation: 'accepted and safe; sent when its turn comes'},
  delivering: {label: 'being sent', explanation: 'a request to the target is in flight'},
  verifying: {label: 'sent, confirming delivery', explanation: 'the outcome is unknown: the target is asked whether it arrived before anything is sent again'},
  error: {label: 'failed', explanation: 'a person has to look: retry it, edit it or discard it'},
  parked: {label: 'parked', explanation: 'put aside; nothing happens until it is unparked'},
};

export function word(status) {
  return WORDS[status] || {label: status, explanation: ''};
}
