package hosts

import "github.com/dynmcp/dynmcp/schema"

// NoteSecrets notes what may be a secret in the server.
func (s *Server) NoteSecrets() {
	for _, place := range s.SecretPlaces() {
		s.note("%s may hold a secret in plain text; --vars puts a variable in its place", place)
	}
}

// MoveSecrets puts references in place of what may be secrets in the server. put takes a secret
// of a server under a name, and returns its reference.
func (s *Server) MoveSecrets(put func(server, name, value string) (reference string)) {
	s.Server = s.ReplaceSecrets(func(found schema.SecretUse) string {
		reference := put(s.Name, found.Name, found.Value)
		s.note("%s is taken from %s", found.Where, reference)
		return reference
	})
}
