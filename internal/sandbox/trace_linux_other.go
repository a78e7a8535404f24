//go:build linux && !amd64

package sandbox

var legacyCalls []tracedCall
