package wire

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	OverwriteLent()
	goleak.VerifyTestMain(m)
}
