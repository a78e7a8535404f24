//go:build !linux

package wire

const busyRead = 32 << 10

// A pipeEnd would be widened when its pipe it is busy; only Linux can do that.
type pipeEnd struct{}

func newPipeEnd(any) pipeEnd { return pipeEnd{} }

func (*pipeEnd) widen() bool { return false }

func (*pipeEnd) release() {}
