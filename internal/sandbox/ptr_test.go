package sandbox_test

import "unsafe"

func ptr(p *[128]byte) unsafe.Pointer { return unsafe.Pointer(p) }
