package wire

import "golang.org/x/sys/cpu"

// vectors reports whether the processor compares 32 bytes at a time.
var vectors = cpu.X86.HasAVX2

// maskVectors is maskWords for processors with AVX2; n is not 0.
//
//go:noescape
func maskVectors(masks *uint64, text *byte, n int)
