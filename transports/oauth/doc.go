// Package oauth logs in to upstreams, stores logins, and adds bearer tokens to requests.
//
// The SDK implements the protocol (discovery, registration, PKCE, the checks of state and
// iss); this package implements the rest:
//
//	flow.go      a login by a person: dynmcp login
//	callback.go  where the browser comes back to
//	browser.go   how one is opened
//	machine.go   client_credentials, a login without a person
//	assertion.go the same, with a signed token in place of a secret
//	enterprise.go the token for that, from a company's identity provider
//	session.go   the runtime: a token for each request, renewed before it expires
//	refresh.go   one refresh at a time, in this process and among all of them
//	dpop.go      tokens that are bound to a key, and a proof with each request
//	logout.go    forgetting and revoking
//	login.go     what a login gave
//	store.go     what keeps logins, and their lock
//	files.go     in the user's files
//	shared.go    in the state that replicas share
//	keyring.go   the key that seals them, in the keyring of the system
//	metadata.go  what a server says of itself must be about it
//	guard.go     the one HTTP client for all of it; no address is trusted
//
// A request never opens a browser. Without a login it is sent unchanged, and the upstream's
// 401 becomes a failure that says what to run ([Session.Hint]). The store is then read again,
// so that the next call after a login finds it.
//
// The package knows neither the connections to upstreams nor the callers: cmd/dynmcp passes
// [Session.Transport] and [Session.Hint] to package upstream as functions.
package oauth
