package fleet

import "testing"

// A call that is sent again is placed before those that came later.
func TestQueueGoesByNumber(t *testing.T) {
	var q Queue
	second, third := q.Join(2), q.Join(3)
	first := q.Join(1)
	for i, ticket := range []*Ticket{first, second, third} {
		<-ticket.Next
		if !ticket.IsFirst() {
			t.Errorf("ticket %d is not the first when it is its turn", i+1)
		}
		ticket.Leave()
	}
}

func TestSlotIsForTheCallThatWaits(t *testing.T) {
	var q Queue
	running := q.Take(nil, 1)
	waiting := q.Join(1)
	q.GiveBack(1)
	if !running || q.Take(nil, 1) || q.Take(nil, 0) || !q.Take(waiting, 1) || q.Take(waiting, 1) {
		t.Error("a call passes the one that waits, or takes a slot that there is not")
	}
}
