package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// The states of a server in a registry.
const (
	Active     = "active"
	Deprecated = "deprecated"
	Deleted    = "deleted"
)

// A Server is one version of a server, as a registry describes it.
type Server struct {
	Name        string
	Title       string
	Description string
	Version     string
	Packages    []Package
	Remotes     []Transport

	Status  string `json:"-"` // Active, Deprecated or Deleted
	Message string `json:"-"` // the reason for the status
	From    string `json:"-"` // the address of the registry
}

// A Package is a package of npm, PyPI, a container or a bundle.
type Package struct {
	RegistryType         string
	RegistryBaseURL      string
	Identifier           string
	Version              string
	FileSHA256           string
	RuntimeHint          string
	Transport            Transport
	RuntimeArguments     []Argument
	PackageArguments     []Argument
	EnvironmentVariables []KeyValue
}

// A Transport describes how to connect to a server.
type Transport struct {
	Type      string
	URL       string
	Headers   []KeyValue
	Variables map[string]Input
}

// An Input is a value that is fixed, or that a person is asked for.
type Input struct {
	Description string
	Value       string
	Default     string
	Placeholder string
	Format      string
	Choices     []string
	IsRequired  bool
	IsSecret    bool

	defaults []string // of a bundle's setting; Default shows them
}

// A Template is an input whose value may name variables in braces.
type Template struct {
	Input
	Variables map[string]Input
}

// An Argument makes words of a command line.
type Argument struct {
	Template
	Type       string
	Name       string
	ValueHint  string
	IsRepeated bool
}

// A KeyValue is a header or an environment variable.
type KeyValue struct {
	Template
	Name string
}

// Limits of what one server may have.
const (
	maxServerBytes = 1 << 20
	maxParts       = 64  // of a list or an object
	maxText        = 8e3 // bytes of a text
)

var (
	serverName    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.-]{0,120}/[A-Za-z0-9][A-Za-z0-9._-]{0,120}$`)
	serverVersion = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,254}$`)
)

// isName reports whether a text is the name of a server in a registry, NAMESPACE/SERVER.
func isName(text string) bool {
	return serverName().MatchString(text) && !strings.Contains(text, "..")
}

// CutVersion splits NAME@VERSION; version is "" if absent.
func CutVersion(text string) (name, version string, err error) {
	name, version, given := strings.Cut(text, "@")
	switch {
	case !isName(name):
		return "", "", fmt.Errorf("%s is not the name of a server in a registry", display.Name(name))
	case given && !serverVersion().MatchString(version):
		return "", "", fmt.Errorf("%s is not a version", display.Name(version))
	}
	return name, version, nil
}

// parseServer parses a server in an answer of the API, with the registry's status of it. Its
// title, description and message are made fit to be shown. A malformed server is an error.
func parseServer(raw json.RawMessage) (*Server, error) {
	if len(raw) > maxServerBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxServerBytes)
	}
	var answer struct {
		Server *Server
		Meta   struct {
			Official struct{ Status, StatusMessage string } `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, errors.New("it is not a server.json")
	}
	s, official := answer.Server, answer.Meta.Official
	if s == nil {
		return nil, errors.New("it has no server")
	}
	var parts struct{ Server map[string]any }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	delete(parts.Server, "_meta") // not read
	if err := bounded(parts.Server); err != nil {
		return nil, err
	}
	switch {
	case !isName(s.Name):
		return nil, errors.New("its name is not NAMESPACE/SERVER")
	case !serverVersion().MatchString(s.Version):
		return nil, errors.New("its version is malformed")
	}
	s.Status = official.Status
	if s.Status != Deprecated && s.Status != Deleted {
		s.Status = Active
	}
	s.Title, s.Description, s.Message = line(s.Title, 100), line(s.Description, 500), line(official.StatusMessage, 200)
	return s, nil
}

// bounded refuses a JSON value with too many parts, or with a text that is too long or has a NUL,
// which no argument, header or variable may have.
func bounded(value any) error {
	switch value := value.(type) {
	case string:
		return short(value)
	case []any:
		if len(value) > maxParts {
			return fmt.Errorf("it has a list of more than %d", maxParts)
		}
		for _, item := range value {
			if err := bounded(item); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(value) > maxParts {
			return fmt.Errorf("it has an object with more than %d members", maxParts)
		}
		for name, member := range value {
			if err := errors.Join(short(name), bounded(member)); err != nil {
				return err
			}
		}
	}
	return nil
}

func short(text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("it has a text of %d bytes", len(text))
	case strings.ContainsRune(text, 0):
		return errors.New("it has a text with a NUL byte")
	}
	return nil
}

// line makes a text of a registry fit to be shown, on one line of at most max bytes.
func line(text string, max int) string { return display.Cut(display.Fold(text), max) }
