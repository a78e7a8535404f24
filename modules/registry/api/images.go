package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

const maxTagPages = 20

// NewestTag returns the tag of an image and the highest tag of the same form: for 1.2.0 not
// 1.3.0-alpine, for v2 not 3. Both are "" for a digest or a tag without a number.
func NewestTag(ctx context.Context, ref string) (pinned, newest string, err error) {
	name, pinned, ok := strings.Cut(ref[strings.LastIndexByte(ref, '/')+1:], ":")
	if !ok || strings.Contains(ref, "@") || !anyDigit().MatchString(pinned) {
		return "", "", nil
	}
	host, path := imageAt(ref[:strings.LastIndexByte(ref, '/')+1] + name)
	r := imageRegistry{base: &url.URL{Scheme: "https", Host: host}}
	if name := r.base.Hostname(); name == "localhost" || name == "127.0.0.1" {
		r.base.Scheme = "http" // as docker does
	}
	r.client = web(r.base)
	tags, err := r.tags(ctx, path)
	if err != nil {
		return "", "", err
	}
	newest = pinned
	for _, tag := range tags {
		if shape(tag) == shape(pinned) && Compare(tag, newest) > 0 {
			newest = tag
		}
	}
	return pinned, newest, nil
}

// imageAt returns the host of an image's registry, and the path there.
func imageAt(image string) (host, path string) {
	const hub = "registry-1.docker.io"
	if !strings.Contains(image, "/") {
		return hub, "library/" + image
	}
	if !named(image) {
		return hub, image
	}
	if host, path, _ = strings.Cut(image, "/"); strings.HasSuffix(host, "docker.io") {
		host = hub
	}
	return host, path
}

var (
	digits   = lazyregexp.New(`\d+`)
	anyDigit = lazyregexp.New(`\d`)
	nextPage = lazyregexp.New(`<([^>]+)>;\s*rel="?next"?`)
	quoted   = lazyregexp.New(`(realm|service|scope)="([^"]*)"`)
)

// shape is a tag without its numbers.
func shape(tag string) string { return digits().ReplaceAllString(tag, "0") }

// An imageRegistry is a client of a registry with the API of OCI's distribution specification.
type imageRegistry struct {
	base   *url.URL
	client *http.Client
	token  string // for anonymous access
}

func (r *imageRegistry) tags(ctx context.Context, path string) (all []string, err error) {
	next := r.base.JoinPath("/v2/", path, "/tags/list")
	next.RawQuery = "n=1000"
	for range maxTagPages {
		resp, body, err := r.get(ctx, next.String())
		if err != nil {
			return nil, err
		}
		var page struct{ Tags []string }
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, fmt.Errorf("%s does not answer with tags", r.base.Host)
		}
		all = append(all, page.Tags...)
		link := nextPage().FindStringSubmatch(resp.Header.Get("Link"))
		if link == nil {
			break
		}
		if next, err = next.Parse(link[1]); err != nil || next.Host != r.base.Host {
			return nil, errors.New("the next page of tags is elsewhere")
		}
	}
	return all, nil
}

// get fetches a page, with an anonymous token if the registry wants one.
func (r *imageRegistry) get(ctx context.Context, address string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	for {
		header := http.Header{}
		if r.token != "" {
			header.Set("Authorization", "Bearer "+r.token)
		}
		resp, body, err := get(ctx, r.client, address, maxPage, header)
		switch {
		case err != nil || resp.StatusCode == http.StatusOK:
			return resp, body, err
		case resp.StatusCode != http.StatusUnauthorized || r.token != "":
			return nil, nil, fmt.Errorf("%s answers %d", r.base.Host, resp.StatusCode)
		}
		if err := r.authorize(ctx, resp.Header.Get("WWW-Authenticate")); err != nil {
			return nil, nil, err
		}
	}
}

func (r *imageRegistry) authorize(ctx context.Context, challenge string) error {
	params := map[string]string{}
	for _, m := range quoted().FindAllStringSubmatch(challenge, -1) {
		params[m[1]] = m[2]
	}
	realm, err := url.Parse(params["realm"])
	if err == nil {
		err = allowed(realm, isPrivate(r.base.Hostname()))
	}
	if err != nil {
		return fmt.Errorf("%s wants a login: %w", r.base.Host, err)
	}
	realm.RawQuery = url.Values{"service": {params["service"]}, "scope": {params["scope"]}}.Encode()
	resp, body, err := get(ctx, r.client, realm.String(), maxPage, nil)
	var answer struct {
		Token  string
		Access string `json:"access_token"`
	}
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil:
		return fmt.Errorf("%s answers %d to a request without a login", realm.Host, resp.StatusCode)
	}
	if r.token = cmp.Or(answer.Token, answer.Access); r.token == "" {
		return fmt.Errorf("%s gives no token", realm.Host)
	}
	return nil
}
