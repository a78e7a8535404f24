package oauth

import (
	"net/url"
	"strings"
)

// A Resource is the address of a server as the subject of a login, made from its entry. People, hosts
// and metadata spell one address differently (RFC 3986, 6.2): it is compared only here.
type Resource struct {
	name  *url.URL // scheme and host in lower case, without the default port, query and fragment
	query string   // of the entry; metadata seldom repeats it (RFC 8707, 2)
}

// resourceOf returns the resource at an address.
func resourceOf(address string) (Resource, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Resource{}, err
	}
	query := u.RawQuery
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	u.Scheme = strings.ToLower(u.Scheme)
	u.Host = foldHost(u)
	return Resource{u, query}, nil
}

func foldHost(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)] {
		return strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return host
}

func (r Resource) String() string { return r.name.String() }

// origin returns the scheme and the host, which are the issuer of a server without metadata.
func (r Resource) origin() string { return r.name.Scheme + "://" + r.name.Host }

// SameOrigin reports whether an address is at the server's own origin.
func (r Resource) SameOrigin(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, r.name.Scheme) && foldHost(u) == r.name.Host
}

// SameAs reports whether the name that metadata gives its server is this one. The query counts only if
// metadata has one, and a slash at the end does not. The document at the root of an origin (root) may
// be that of the origin.
func (r Resource) SameAs(named string, root bool) bool {
	other, err := resourceOf(named)
	if err != nil || other.origin() != r.origin() || other.query != "" && other.query != r.query {
		return false
	}
	path := strings.TrimRight(other.name.EscapedPath(), "/")
	return path == strings.TrimRight(r.name.EscapedPath(), "/") || root && path == ""
}

// folded returns the address of an issuer as the SDK's discovery needs it: without a slash at the end.
func folded(issuer string) string {
	r, err := resourceOf(issuer)
	if err != nil {
		return issuer
	}
	return strings.TrimRight(r.String(), "/")
}
