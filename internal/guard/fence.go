package guard

import "errors"

// ErrFenced means that the deadline of a tree's [Fence] has passed.
var ErrFenced = errors.New("it was killed: its replica lost the lease")
