#!/usr/bin/env node
// A fake OpenAI-compatible model provider, for tests. No dependencies; node 18.
//
//   node fake-provider.mjs [--port N] [--host 127.0.0.1] [--log FILE]
//
// Answers POST /v1/chat/completions and POST /v1/responses (streaming and not)
// and GET /v1/models. What an answer does is taken, field by field, from
//   1. a directive in the newest user message:  [[fake {"delay":2000,"chunks":3}]]
//   2. the first rule whose "match" is a substring of the newest user message
//   3. the defaults
// Rules and defaults are set with PUT /control (see README.md).
import http from "node:http"
import fs from "node:fs"

const argv = process.argv.slice(2)
const opt = (name, dflt) => {
  const i = argv.indexOf("--" + name)
  return i >= 0 && i + 1 < argv.length ? argv[i + 1] : dflt
}
const HOST = opt("host", "127.0.0.1")
const PORT = Number(opt("port", process.env.FAKE_PROVIDER_PORT ?? 0))
const LOG = opt("log", null)

const DEFAULTS = {
  delay: 0,        // ms before the response's status line
  first: 0,        // ms after the status line, before the first chunk
  chunks: 2,       // pieces the reply is cut into
  every: 0,        // ms between two chunks
  status: 200,     // any other: an OpenAI error body with this status
  reply: "ok",     // the assistant's text
  hold: false,     // wait (after the status line) until POST /control/release
  cut: false,      // destroy the socket after the first chunk
  retryAfter: null // value of a retry-after header on an error
}
const FIELDS = Object.keys(DEFAULTS)
let defaults = { ...DEFAULTS }
let rules = []
let requests = []
let seq = 0
let waiting = []

const log = (line) => { if (LOG) fs.appendFileSync(LOG, `${Date.now()} ${line}\n`) }
const sleep = (ms, gone) => new Promise((ok) => {
  if (!(ms > 0)) return ok()
  const t = setTimeout(ok, ms)
  gone.add(() => { clearTimeout(t); ok() })
})
const held = (gone) => new Promise((ok) => {
  waiting.push(ok)
  gone.add(ok)
})

const textOf = (content) => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((p) => p.text ?? "").join("")
}

// What was asked: the newest user text, the system text, how many messages.
function digest(body) {
  const list = Array.isArray(body.messages) ? body.messages
    : Array.isArray(body.input) ? body.input
    : typeof body.input === "string" ? [{ role: "user", content: body.input }] : []
  const users = list.filter((m) => m.role === "user").map((m) => textOf(m.content))
  const system = list.filter((m) => m.role === "system" || m.role === "developer")
    .map((m) => textOf(m.content)).join("\n") + (body.instructions ?? "")
  const title = /title generator/i.test(system)
  return { user: users.at(-1) ?? "", users, kind: title ? "title" : "turn", messages: list.length }
}

function plan(user, kind) {
  if (kind === "title") return { ...DEFAULTS, reply: "a title" }
  let p = { ...defaults }
  const rule = rules.find((r) => user.includes(r.match))
  if (rule) for (const f of FIELDS) if (f in rule) p[f] = rule[f]
  const m = user.match(/\[\[fake (\{.*?\})\]\]/s)
  if (m) {
    try {
      const d = JSON.parse(m[1])
      for (const f of FIELDS) if (f in d) p[f] = d[f]
    } catch { /* not a directive */ }
  }
  return p
}

function pieces(text, n) {
  const cps = Array.from(String(text))
  const size = Math.max(1, Math.ceil(cps.length / Math.max(1, n)))
  const out = []
  for (let i = 0; i < cps.length; i += size) out.push(cps.slice(i, i + size).join(""))
  while (out.length < n) out.push("")
  return out
}

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

async function answer(req, res, body, api) {
  const d = digest(body)
  const p = plan(d.user, d.kind)
  const rec = {
    n: ++seq, api, kind: d.kind, model: body.model, stream: !!body.stream, user: d.user,
    users: d.users, messages: d.messages, started: Date.now(), ended: null, outcome: "running",
  }
  requests.push(rec)
  log(`start n=${rec.n} kind=${rec.kind} user=${JSON.stringify(rec.user).slice(0, 120)}`)
  const gone = new Set()
  let closed = false
  res.on("close", () => {
    closed = true
    if (rec.outcome === "running") { rec.outcome = "aborted"; rec.ended = Date.now(); log(`abort n=${rec.n}`) }
    for (const f of gone) f()
  })
  const finish = (outcome) => {
    if (rec.outcome !== "running") return
    rec.outcome = outcome; rec.ended = Date.now(); log(`${outcome} n=${rec.n}`)
  }

  await sleep(p.delay, gone)
  if (closed) return
  if (p.status !== 200) {
    const headers = { "content-type": "application/json" }
    if (p.retryAfter !== null) headers["retry-after"] = String(p.retryAfter)
    res.writeHead(p.status, headers)
    finish("error " + p.status)
    return res.end(JSON.stringify({ error: { message: `fake error ${p.status}`, type: "fake_error", code: "fake" } }))
  }
  const id = `fake-${rec.n}`
  const created = Math.floor(Date.now() / 1000)
  const parts = pieces(p.reply, p.chunks)
  const full = parts.join("")

  if (!body.stream) {
    await sleep(p.first, gone)
    if (p.hold) await held(gone)
    if (closed) return
    for (let i = 1; i < parts.length; i++) { await sleep(p.every, gone); if (closed) return }
    if (p.cut) { finish("cut"); return res.destroy() }
    res.writeHead(200, { "content-type": "application/json" })
    finish("done")
    return res.end(JSON.stringify(api === "chat"
      ? { id, object: "chat.completion", created, model: body.model, usage,
          choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: full } }] }
      : responseObject(id, created, body.model, full, "completed")))
  }

  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  res.flushHeaders()
  const send = (obj, event) => res.write((event ? `event: ${event}\n` : "") + `data: ${JSON.stringify(obj)}\n\n`)
  await sleep(p.first, gone)
  if (p.hold) await held(gone)
  if (closed) return

  if (api === "chat") {
    const chunk = (delta, finish_reason = null, extra = {}) => send({
      id, object: "chat.completion.chunk", created, model: body.model,
      choices: [{ index: 0, delta, finish_reason }], ...extra,
    })
    for (let i = 0; i < parts.length; i++) {
      if (i) await sleep(p.every, gone)
      if (closed) return
      chunk(i ? { content: parts[i] } : { role: "assistant", content: parts[i] })
      if (p.cut) { finish("cut"); return res.destroy() }
    }
    chunk({}, "stop", { usage })
    res.write("data: [DONE]\n\n")
  } else {
    let s = 0
    const ev = (type, obj) => send({ type, sequence_number: s++, ...obj }, type)
    const item = (status, text) => ({ id: `msg_${id}`, type: "message", role: "assistant", status,
      content: text === null ? [] : [{ type: "output_text", text, annotations: [] }] })
    const at = { item_id: `msg_${id}`, output_index: 0, content_index: 0 }
    ev("response.created", { response: responseObject(id, created, body.model, null, "in_progress") })
    ev("response.output_item.added", { output_index: 0, item: item("in_progress", null) })
    ev("response.content_part.added", { ...at, part: { type: "output_text", text: "", annotations: [] } })
    for (let i = 0; i < parts.length; i++) {
      if (i) await sleep(p.every, gone)
      if (closed) return
      ev("response.output_text.delta", { ...at, delta: parts[i] })
      if (p.cut) { finish("cut"); return res.destroy() }
    }
    ev("response.output_text.done", { ...at, text: full })
    ev("response.content_part.done", { ...at, part: { type: "output_text", text: full, annotations: [] } })
    ev("response.output_item.done", { output_index: 0, item: item("completed", full) })
    ev("response.completed", { response: responseObject(id, created, body.model, full, "completed") })
  }
  finish("done")
  res.end()
}

function responseObject(id, created_at, model, text, status) {
  return {
    id: `resp_${id}`, object: "response", created_at, model, status, error: null, incomplete_details: null,
    output: text === null ? [] : [{ id: `msg_${id}`, type: "message", role: "assistant", status: "completed",
      content: [{ type: "output_text", text, annotations: [] }] }],
    usage: status === "completed" ? { input_tokens: 1, input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 } : null,
  }
}

const json = (res, status, obj) => {
  res.writeHead(status, { "content-type": "application/json" })
  res.end(JSON.stringify(obj))
}
const read = (req) => new Promise((ok, bad) => {
  const bufs = []
  req.on("data", (b) => bufs.push(b)).on("end", () => ok(Buffer.concat(bufs).toString("utf8"))).on("error", bad)
})

async function route(req, res) {
  const path = req.url.split("?")[0]
  const key = `${req.method} ${path}`
  if (key === "GET /health") return json(res, 200, { ok: true })
  if (key === "GET /v1/models") return json(res, 200, { object: "list", data: [{ id: "fake-1", object: "model" }] })
  if (key === "GET /control") return json(res, 200, { defaults, rules, waiting: waiting.length })
  if (key === "PUT /control") {
    const b = JSON.parse((await read(req)) || "{}")
    if (b.defaults) defaults = { ...DEFAULTS, ...b.defaults }
    if (b.rules) rules = b.rules
    return json(res, 200, { defaults, rules })
  }
  if (key === "POST /control/release") {
    const n = waiting.length
    const list = waiting
    waiting = []
    for (const f of list) f()
    return json(res, 200, { released: n })
  }
  if (key === "POST /control/reset") {
    for (const f of waiting) f()
    defaults = { ...DEFAULTS }; rules = []; requests = []; waiting = []
    return json(res, 200, { ok: true })
  }
  if (key === "GET /requests") return json(res, 200, requests)
  if (req.method === "POST" && (path === "/v1/chat/completions" || path === "/v1/responses")) {
    return answer(req, res, JSON.parse(await read(req)), path === "/v1/responses" ? "responses" : "chat")
  }
  log(`unknown ${key}`)
  return json(res, 404, { error: { message: "no such path: " + key } })
}

const server = http.createServer((req, res) => {
  route(req, res).catch((e) => {
    log(`bad ${e.message}`)
    if (!res.headersSent) json(res, 400, { error: { message: String(e.message) } })
    else res.destroy()
  })
})
server.requestTimeout = 0
server.listen(PORT, HOST, () => {
  console.log(`http://${HOST}:${server.address().port}`)
})
for (const sig of ["SIGTERM", "SIGINT"]) process.on(sig, () => process.exit(0))
