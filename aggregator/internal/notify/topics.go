package notify

import (
	"encoding/json"
	"strings"
)

// A topic is the subject of a subscription: the URI of a resource, or a task.

// taskTopic begins the topic of a task, which is not a URI.
const taskTopic = "\x00task "

// TaskTopic returns the topic of a task, by the host's id.
func TaskTopic(id string) string { return taskTopic + id }

// TaskOf returns the task of a topic, by the host's id.
func TaskOf(topic string) (id string, ok bool) { return strings.CutPrefix(topic, taskTopic) }

// A Stream is a stream of notifications for a host of the stateless era (MCP 2026-07-28,
// "Subscriptions").
type Stream struct {
	ID      json.RawMessage // of the request, as it was sent
	Changes map[string]bool // the list_changed notifications that it wants
	URIs    map[string]bool
	Tasks   map[string]bool // by the host's ids
}

func (st Stream) topics() (all []string) {
	for uri := range st.URIs {
		all = append(all, uri)
	}
	for id := range st.Tasks {
		all = append(all, TaskTopic(id))
	}
	return all
}

// Covers reports whether a stream is subscribed to a resource.
func (st Stream) Covers(uri string) bool { return anyCovers(st.URIs, uri) }

// covers reports whether a subscription to one URI includes another: servers may announce parts of a
// subscribed resource (MCP, "Resources", subscriptions).
func covers(subscribed, uri string) bool {
	rest, ok := strings.CutPrefix(uri, subscribed)
	return ok && (rest == "" || strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

func anyCovers(subscribed map[string]bool, uri string) bool {
	for s := range subscribed {
		if covers(s, uri) {
			return true
		}
	}
	return false
}
