//go:build !linux

package wire

const busyRead = 32 << 10

// A pipeEnd widens a busy pipe, which only Linux can do.
type pipeEnd struct{}

func newPipeEnd(any) pipeEnd { return pipeEnd{} }

func (*pipeEnd) widen() bool { return false }

func (*pipeEnd) release() {}
