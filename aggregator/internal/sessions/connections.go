package sessions

import "sync"

// Connections are those over which the session's last calls of servers went. The zero value is
// ready to use.
type Connections struct {
	mu    sync.Mutex
	last  map[string]connection // by server
	moved map[string]bool       // servers whose answers have not told yet that they have another process
}

// A connection ends with the process, or the remote session, behind it. One that takes no new calls
// lives on for those in flight.
type connection interface{ Done() <-chan struct{} }

// Use records the connection of a call to a server.
func (cs *Connections) Use(server string, conn connection) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.last == nil {
		cs.last, cs.moved = map[string]connection{}, map[string]bool{}
	}
	if last := cs.last[server]; last != nil && last != conn {
		select {
		case <-last.Done():
		default:
			cs.moved[server] = true
		}
	}
	cs.last[server] = conn
}

// Moved reports, once, whether calls of a server have gone over another connection while the last
// was open: the model does not know that the state of the server is gone.
func (cs *Connections) Moved(server string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	moved := cs.moved[server]
	delete(cs.moved, server)
	return moved
}
