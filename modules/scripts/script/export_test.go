package script

import (
	"context"
	"os/exec"
	"time"

	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// Warm returns the process that is kept for the next script, and a channel that is closed when
// it has ended; 0 and nil if none is kept.
func (p *Pool) Warm() (pid int, ended <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warm == nil {
		return 0, nil
	}
	return p.warm.tree.Pid(), p.warm.ended
}

// RunIn runs a script in a child that is another command.
func (p *Pool) RunIn(ctx context.Context, cmd *exec.Cmd, answer Answerer) (*Result, error) {
	c, err := startCommand(cmd, nil, p.children.Go)
	if err != nil {
		return nil, err
	}
	r := &run{child: c, answer: answer, place: &place{in: &p.shares}, script: Script{Time: time.Minute, Run: engine.Run{Calls: 3, AtOnce: 2, Output: 10, CPU: time.Second}}}
	err = r.run(ctx)
	c.end()
	return &r.result, err
}
