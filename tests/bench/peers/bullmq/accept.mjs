// The BullMQ pipeline, accept side: POST /sessions/:session/messages adds a job whose ID is the clientMessageID (so it
// is deduplicated as long as the job is kept), then answers 202. PORT, STORE_SOCKET.
import Fastify from 'fastify';
import { Queue } from 'bullmq';

const queue = new Queue('outbox', {
  connection: { path: process.env.STORE_SOCKET },
  defaultJobOptions: {
    attempts: 5,
    backoff: { type: 'exponential', delay: 10000 },
    removeOnComplete: { age: 86400 },
  },
});
const app = Fastify({ logger: false });

app.post('/sessions/:session/messages', async (request, reply) => {
  const { clientMessageID, text } = request.body;
  const job = await queue.add('message', { session: request.params.session, clientMessageID, text }, { jobId: clientMessageID });
  reply.code(202);
  return { id: job.id };
});
await queue.waitUntilReady();
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.on('SIGTERM', () => process.exit(0));
