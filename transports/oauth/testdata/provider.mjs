// MCP servers that are protected by oidc-provider, a certified authorization server. Arguments: the
// node_modules with it, and the shapes of the servers as JSON. Prints the base URL of each in a line.
// /test/expire and /test/counts of each are for the test.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'

console.info = console.warn = () => {} // it says that this is for tests only
const { default: Provider } = await import(pathToFileURL(process.argv[2] + '/oidc-provider/lib/index.js'))

// result returns the answer to an MCP request. The only tool says whose token came, and with which scopes,
// in order of their names: a scope is a set (RFC 6749, 3.3), and the Go SDK requests it in any order.
function result({ method }, { sub, scope }) {
  switch (method) {
    case 'initialize':
      return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'protected', version: '1' } }
    case 'tools/list':
      return { tools: [{ name: 'whoami', description: 'Says whose token this is.', inputSchema: { type: 'object' } }] }
    case 'tools/call':
      return { content: [{ type: 'text', text: `${sub} with ${scope.split(' ').sort().join(' ')}` }] }
  }
}

async function serve(shape) {
  const server = createServer()
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  const base = `http://127.0.0.1:${server.address().port}`
  const mount = shape.mount ?? ''
  const resource = base + '/mcp'
  const counts = { registered: 0, deleted: 0, granted: 0, refreshed: 0, revoked: 0, calls: 0 }
  const provider = new Provider(base + mount, {
    clients: shape.client ? [{
      client_id: 'known', application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'],
      ...(shape.secret ? { client_secret: shape.secret, token_endpoint_auth_method: 'client_secret_basic' } : { token_endpoint_auth_method: 'none' }),
    }] : [],
    scopes: ['openid', 'offline_access', 'read', 'write'],
    features: {
      registration: { enabled: !shape.client },
      registrationManagement: { enabled: !shape.client },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, asked) => {
          if (asked !== resource) throw new Error(`unknown resource ${asked}`)
          return { scope: 'read write', audience: resource, accessTokenFormat: shape.jwt ? 'jwt' : 'opaque', jwt: { sign: { alg: 'RS256' } } }
        },
      },
    },
    issueRefreshToken: (_, client) => !shape.norefresh && client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    cookies: { keys: ['only for tests'] },
    pkce: { required: () => true },
  })
  const tokens = new Set() // that are valid, if they are JWTs
  provider.on('registration_create.success', () => counts.registered++)
  provider.on('registration_delete.success', () => counts.deleted++)
  provider.on('grant.success', (ctx) => { ctx.oidc.params.grant_type === 'refresh_token' ? counts.refreshed++ : counts.granted++ })
  provider.on('grant.success', (ctx) => { if (shape.jwt) tokens.add(ctx.body.access_token) })
  provider.on('refresh_token.destroyed', () => counts.revoked++)
  provider.on('grant.revoked', () => counts.revoked++)
  for (const event of ['server_error', 'grant.error', 'authorization.error', 'registration_create.error', 'revocation.error']) {
    provider.on(event, (_, err) => console.error(event, err.message, err.error_description ?? ''))
  }
  const callback = provider.callback()
  const at = shape.metadata === 'root' ? '/.well-known/oauth-protected-resource' : '/.well-known/oauth-protected-resource/mcp'
  const answer = (res, status, value, headers = {}) => {
    res.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    res.end(JSON.stringify(value))
  }
  let used // the last access token that came
  server.on('request', async (req, res) => {
    const path = req.url.split('?')[0]
    if (path === '/test/counts') return answer(res, 200, counts)
    if (path === '/test/expire') {
      await (await provider.AccessToken.find(used))?.destroy()
      tokens.delete(used)
      return answer(res, 200, {})
    }
    if (path === at && shape.metadata !== 'none') return answer(res, 200, { resource, authorization_servers: [base + mount], scopes_supported: ['read'] })
    if (path === '/mcp') {
      const token = (req.headers.authorization ?? '').replace(/^Bearer /, '')
      const claims = !token ? undefined
        : !shape.jwt ? await provider.AccessToken.find(token)
        : tokens.has(token) ? JSON.parse(Buffer.from(token.split('.')[1], 'base64url')) : undefined
      if (claims?.aud !== resource) {
        const said = [shape.challenge !== false && `resource_metadata="${base + at}"`, shape.scope && `scope="${shape.scope}"`].filter(Boolean).join(', ')
        return answer(res, 401, {}, { 'WWW-Authenticate': 'Bearer' + (said && ' ' + said) })
      }
      used = token
      counts.calls++
      if (req.method !== 'POST') return answer(res, 405, {})
      const message = JSON.parse(await text(req))
      if (!message.method) return answer(res, 200, {})
      if (message.id === undefined) return res.writeHead(202).end()
      const found = result(message, { sub: claims.sub ?? claims.accountId, scope: claims.scope })
      return answer(res, 200, { jsonrpc: '2.0', id: message.id, ...(found ? { result: found } : { error: { code: -32601, message: 'unknown method' } }) })
    }
    if (mount) {
      if (!path.startsWith(mount + '/')) return answer(res, 404, {})
      req.originalUrl = req.url
      req.url = req.url.slice(mount.length)
    }
    callback(req, res)
  })
  return base
}

for (const shape of JSON.parse(process.argv[3])) console.log(await serve(shape))
process.stdin.on('end', () => process.exit()).resume() // with the test
