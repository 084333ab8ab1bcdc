-- One step of an operation on a workspace: at most `limit` entries of the sessions it is given (contract §2). Whoever
-- drives it goes on where it stopped; a step that is repeated finds its own work by `at` and answers the same.
-- ARGV[3] workspace, [4] when the operation began, [5] limit, [6] the entry behind which the first session goes on ('':
-- at its beginning), [7] the operation's own argument, from [8] on sessions.
-- include: core
local ws, at, limit, behind, argument = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]

-- Whether this operation has changed that entry before: its answer was lost.
local function did_before(id)
  return fields_of(ws, id, 'operation')[1] == ARGV[4]
end

-- each(ses, id, e) answers how much it did (a number), and whether the entry has left the queue; e is nil for an ID
-- that stands for nothing. leave(ses, changed, is_complete) runs behind each session.
-- Returns {now, sessions completed, the entry behind which to go on in the next one or '', how much was done}.
local function walk_sessions(each, leave)
  local left, total, completed = limit, 0, 0
  held_counts = {}
  for i = 8, #ARGV do
    if left <= 0 then
      break
    end
    local ses, from, last, changed = ARGV[i], 0, '', 0
    local queue = key('outboxq', ws, ses)
    if i == 8 and behind ~= '' then
      -- Gone meanwhile: from the beginning, where all is done that was to be done.
      from = (call('LPOS', queue, behind) or -1) + 1
    end
    local ids = call('LRANGE', queue, from, from + left) -- one more than there is time for: is it the end?
    local size = math.min(#ids, left)
    for n = 1, size do
      local did, is_gone = each(ses, ids[n], load(ws, ids[n]))
      changed = changed + did
      if not is_gone then
        last = ids[n]
      end
    end
    left = left - math.max(size, 1)
    total = total + changed
    local is_complete = #ids == size
    leave(ses, changed, is_complete)
    if not is_complete then
      settle_counts(ws)
      return {now, completed, last, total}
    end
    completed = completed + 1
  end
  settle_counts(ws)
  return {now, completed, '', total}
end

-- Behind a session in which something is due again. Its claim finds out what; a locked one is looked at by its owner.
local function due_again(ses, changed)
  if changed > 0 and not is_locked(ws, ses) then
    index(ws, ses, now)
    reindex(ws)
  end
end
