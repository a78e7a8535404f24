package aggregator

// announce notifies hosts of what changed, for as long as the aggregator runs.
func (a *Aggregator) announce() {
	for a.changed.Wait(a.ctx) {
		a.work.Guard(func() {
			for _, known := range a.sessions.All() {
				s := a.of(known)
				if s.Replica { // it reads what the server lists, not what hosts read
					continue
				}
				settled := !(wait{session: s}).incomplete() // before the snapshot, which holds what ended the wait
				now := s.Snapshot()
				s.Recipient.Announce(now, s.FollowedTasks(), s.Reading(now, settled), settled)
			}
		})
	}
}
