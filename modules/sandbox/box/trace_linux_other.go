//go:build linux && !amd64

package box

var legacyCalls []tracedCall
