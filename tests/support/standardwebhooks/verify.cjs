// Judges signed requests with the npm package standardwebhooks: verify.cjs FOLDER, one JSON object a line on stdin
// {secret, headers, body (base64)}, one answer a line: "ok", or why it was refused.
const { createRequire } = require('node:module');
const { createInterface } = require('node:readline');

const { Webhook } = createRequire(`${process.argv[2]}/package.json`)('standardwebhooks');

createInterface({ input: process.stdin }).on('line', (line) => {
  const { secret, headers, body } = JSON.parse(line);
  try {
    new Webhook(secret).verify(Buffer.from(body, 'base64').toString('utf8'), headers);
    console.log('ok');
  } catch (error) {
    console.log(`${error.constructor.name}: ${error.message}`);
  }
});
