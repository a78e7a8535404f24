//go:build !amd64

package wire

const vectors = false

func maskVectors(*uint64, *byte, int) { panic("there are no vectors") }
