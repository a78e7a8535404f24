// Stands in front of an MCP server that has one other behind it and shows the tools of
// that under their own names: "sdk__" goes away on the way out and comes back on the way
// in. Only so the suite finds its tools behind a config.
// Usage: node conformance-names.mjs COMMAND ARGS…    of a server on stdio
//        node conformance-names.mjs http://… PORT    of one on HTTP
import { spawn } from 'node:child_process'
import { createServer, request } from 'node:http'
import { createInterface } from 'node:readline'

// inward and outward rename a message, or a line of one.
const inward = (text) => {
  const message = JSON.parse(text)
  if (message.method === 'tools/call' && message.params?.name !== undefined) message.params.name = `sdk__${message.params.name}`
  return JSON.stringify(message)
}
const outward = (line) => line.replaceAll('"name":"sdk__', '"name":"')

function onHTTP(to, port) {
  const server = createServer(async (req, res) => {
    const parts = []
    for await (const part of req) parts.push(part)
    let body = Buffer.concat(parts)
    const headers = { ...req.headers }
    try {
      body = Buffer.from(inward(body.toString()))
      if (headers['content-length']) headers['content-length'] = body.length
      if (headers['mcp-method'] === 'tools/call' && headers['mcp-name']) headers['mcp-name'] = `sdk__${headers['mcp-name']}`
    } catch {} // what is no message is for the server to refuse
    const target = new URL(to)
    const out = request({ host: target.hostname, port: target.port, path: target.pathname, method: req.method, headers }, (answer) => {
      delete answer.headers['content-length']
      res.writeHead(answer.statusCode, answer.headers)
      res.flushHeaders()
      let rest = '' // of a line: events and messages are lines
      answer.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop()
        if (lines.length > 0) res.write(outward(lines.join('\n') + '\n'))
      }).on('end', () => res.end(outward(rest))).on('error', () => res.destroy())
    })
    out.on('error', () => res.destroy())
    res.on('close', () => out.destroy())
    out.end(body)
  })
  server.listen(Number(port), '127.0.0.1')
  process.on('SIGTERM', () => process.exit(0))
}

function onStdio(command, args) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  createInterface({ input: process.stdin }).on('line', (line) => child.stdin.write(inward(line) + '\n')).on('close', () => child.stdin.end())
  createInterface({ input: child.stdout }).on('line', (line) => process.stdout.write(outward(line) + '\n'))
  child.on('exit', (code) => process.exit(code ?? 1))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
}

const [first, ...rest] = process.argv.slice(2)
if (first.startsWith('http://')) onHTTP(first, rest[0])
else onStdio(first, rest)
