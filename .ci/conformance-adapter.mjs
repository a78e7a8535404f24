// An MCP server of 2026-07-28 on HTTP in front of one that speaks stdio, for the
// conformance suite: unlike supergateway it keeps one process for all requests, as
// tasks need. Tools may have a prefix behind it that the suite does not know.
// Usage: conformance-adapter.mjs PORT PREFIX COMMAND [ARGUMENT…]
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

const [port, prefix, command, ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
const waiting = new Map() // our id → the response that waits for the answer, and its id
let last = 0

createInterface({ input: child.stdout }).on('line', (line) => {
  const message = JSON.parse(line)
  const of = waiting.get(message.id ?? message.params?._meta?.['io.modelcontextprotocol/subscriptionId'])
  if (!of) return // what belongs to a request, which none of these scenarios looks at
  if (message.id === undefined) {
    message.params._meta['io.modelcontextprotocol/subscriptionId'] = of.id
    if (!of.res.headersSent) of.res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    of.res.write(`data: ${JSON.stringify(message)}\n\n`)
    return
  }
  waiting.delete(message.id)
  for (const tool of message.result?.tools ?? []) tool.name = tool.name.replace(prefix, '')
  of.res.writeHead(200, { 'Content-Type': 'application/json' })
  of.res.end(JSON.stringify({ ...message, id: of.id }))
})

const server = createServer(async (req, res) => {
  if (req.url === '/ready') return res.end('ready')
  const parts = []
  for await (const part of req) parts.push(part)
  if (req.method !== 'POST') return res.writeHead(405).end()
  const message = JSON.parse(Buffer.concat(parts))
  const { method, params = {}, id } = message
  const named = params.taskId ?? params.uri ?? params.name
  const wrong = req.headers['mcp-method'] !== method || (named !== undefined && req.headers['mcp-name'] !== named)
  if (id !== undefined && wrong) {
    const error = { code: -32020, message: 'a header does not match the body' }
    return res.writeHead(400, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }
  if (method === 'tools/call') message.params = { ...params, name: prefix + params.name }
  if (id === undefined) res.writeHead(202).end()
  else {
    message.id = ++last
    waiting.set(message.id, { id, res })
    res.on('close', () => {
      if (!waiting.delete(message.id)) return
      child.stdin.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${message.id}}}\n`)
    })
  }
  child.stdin.write(JSON.stringify(message) + '\n')
})
server.listen(Number(port), '127.0.0.1')

const stop = () => {
  server.close()
  server.closeAllConnections()
  child.stdin.end()
}
process.on('SIGTERM', stop)
child.on('exit', () => process.exit(0))
