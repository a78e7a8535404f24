// A client of the official TypeScript SDK calls the tool whoami twice; before the second time its access
// token expires, if an address for that is given. Arguments: the node_modules with the SDK, its version (1
// or 2), the address or "", and {"url", "client"} of the server or {"command", "args"} as JSON. Prints
// "page" and the address of a login page, then "said" and what the tool said, or "error" and why not.
import { createServer } from 'node:http'
import { pathToFileURL } from 'node:url'

const [modules, version, expire, target] = process.argv.slice(2)
const { url, client: known, command, args } = JSON.parse(target)
const from = async (files) => Object.assign({}, ...(await Promise.all(files.map((file) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${file}`))))))
const { Client, StreamableHTTPClientTransport, StdioClientTransport, UnauthorizedError } = await from(version === '1'
  ? ['index', 'streamableHttp', 'stdio', 'auth'].map((name) => `sdk/dist/esm/client/${name}.js`)
  : ['index', 'stdio'].map((name) => `client/dist/${name}.mjs`))

// Comes back with the parameters of the callback.
let back
const login = new Promise((resolve) => { back = resolve })
const callback = createServer((req, res) => {
  back(new URL(req.url, 'http://127.0.0.1').searchParams)
  res.end()
})
await new Promise((done) => callback.listen(0, '127.0.0.1', done))

let registered = known, tokens, verifier, discovery
const provider = {
  redirectUrl: `http://127.0.0.1:${callback.address().port}/callback`,
  get clientMetadata() {
    return {
      client_name: 'client.mjs', application_type: 'native', redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    }
  },
  clientInformation: () => registered,
  // That of the config is not replaced.
  ...(known?.client_id ? {} : { saveClientInformation: (information) => { registered = information } }),
  tokens: () => tokens,
  saveTokens: (saved) => { tokens = saved },
  redirectToAuthorization: (address) => console.log('page ' + address),
  saveCodeVerifier: (saved) => { verifier = saved },
  codeVerifier: () => verifier,
  discoveryState: () => discovery,
  saveDiscoveryState: (saved) => { discovery = saved },
}

const connect = async (transport) => {
  const client = new Client({ name: 'client.mjs', version: '1' }, version === '1' ? {} : { versionNegotiation: { mode: 'auto' } })
  await client.connect(transport)
  return client
}

const open = async () => {
  if (command) return connect(new StdioClientTransport({ command, args, env: process.env }))
  const remote = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
  const first = remote()
  try {
    return await connect(first)
  } catch (err) {
    if (!(err instanceof UnauthorizedError)) throw err
    const params = await login
    await (version === '1' ? first.finishAuth(params.get('code')) : first.finishAuth(params))
    return connect(remote())
  }
}

try {
  const client = await open()
  const name = (await client.listTools()).tools.map((tool) => tool.name).find((tool) => tool.endsWith('whoami'))
  if (!name) throw new Error('no tool whoami is listed')
  const said = []
  for (const again of [false, true]) {
    if (again && !expire) break
    if (again) await fetch(expire)
    const { content, isError } = await client.callTool({ name, arguments: {} })
    if (isError) throw new Error(content[0].text)
    said.push(content[0].text)
  }
  console.log('said ' + said.join('; '))
  await client.close()
} catch (err) {
  console.log('error ' + `${err}`.replaceAll('\n', ' '))
}
process.exit()
