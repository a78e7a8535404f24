// Runs a command that speaks MCP over stdio and shows the tools of the one server
// behind it under their own names: "sdk__" goes away on the way out and comes back on
// the way in. Only so the suite finds its tools behind a config.
// Usage: node conformance-names.mjs COMMAND ARGS…
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const [command, ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.method === 'tools/call') message.params.name = `sdk__${message.params.name}`
  child.stdin.write(JSON.stringify(message) + '\n')
}).on('close', () => child.stdin.end())
createInterface({ input: child.stdout }).on('line', (line) => process.stdout.write(line.replaceAll('"name":"sdk__', '"name":"') + '\n'))
child.on('exit', (code) => process.exit(code ?? 1))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
