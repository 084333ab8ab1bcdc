// The BullMQ pipeline, delivery side: one Worker, HTTP POST over kept connections. TARGET, STORE_SOCKET, CONCURRENCY.
import { Worker } from 'bullmq';
import { Pool } from 'undici';

const concurrency = Number(process.env.CONCURRENCY ?? 50);
const pool = new Pool(process.env.TARGET, { connections: concurrency, pipelining: 1 });

async function deliver(job) {
  const { session, clientMessageID, text } = job.data;
  const answer = await pool.request({
    path: `/sessions/${session}/prompt`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ clientMessageID, text }),
  });
  await answer.body.dump();
  if (answer.statusCode >= 300) {
    throw new Error(`status ${answer.statusCode}`);
  }
}

const worker = new Worker('outbox', deliver, {
  connection: { path: process.env.STORE_SOCKET },
  concurrency,
  removeOnComplete: { age: 86400 },
});
worker.on('error', (error) => console.error(error.message));
await worker.waitUntilReady();
console.log('ready');
process.on('SIGTERM', () => process.exit(0));
