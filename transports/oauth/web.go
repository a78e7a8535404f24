package oauth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A Web receives the browsers of a gateway's users, on any replica. A user gets the address of a page
// of the gateway that says who logs in where. The page leads to the authorization server, and only the
// browser that was there comes back: an address that one user sends to another is of no use to him
// unless the other agrees to log in for him.
//
// The state of the request is sealed: it names the user, the server and that browser. The login goes
// on at the replica where it began. If the browser reaches another one, that leaves what the browser
// brings in the state of the cluster.
type Web struct {
	base   string         // the address of the gateway, without a slash at the end
	keys   *seal.Keys     // those of the cluster, or of this process
	bucket records.Bucket // nil without a cluster

	mu     sync.Mutex
	logins map[string]*webLogin // by id, those that began here
}

// WebPath begins the paths that a Web serves.
const WebPath = "/login/"

const (
	webPath   = WebPath + "callback"
	webCookie = "dynmcp-login-"    // and the id
	webTime   = 10 * time.Minute   // for which the records of a login are kept
	webPause  = logins.Pause * 3   // between looks at the state of the cluster
	webAbout  = "login of a user"  // the purpose of seals
	webResult = "result of a user" // the purpose of seals
)

// NewWeb returns the Web of a gateway at an address whose logins are in a store.
func NewWeb(address string, store *logins.Store) *Web {
	w := &Web{base: strings.TrimSuffix(address, "/"), logins: map[string]*webLogin{}}
	if w.bucket, w.keys = store.Shared(); w.bucket == nil {
		w.keys = seal.Random()
	}
	return w
}

// Address returns the address of the gateway, without a slash at the end.
func (w *Web) Address() string { return w.base }

// A webLogin is a login under way.
type webLogin struct {
	web *Web
	key logins.Key
	id  string

	mu   sync.Mutex
	stop context.CancelFunc // of the look at the state of the cluster; nil if there is none
	wait sync.WaitGroup
	back *callback // nil before open
	page webPage
}

// A webPage is what the page of a login says, and what its state holds.
type webPage struct {
	ID        string `json:"id"`
	Principal string `json:"principal"`
	Server    string `json:"server"`
	Browser   string `json:"browser"`           // what the browser that was on the page has in its cookie
	State     string `json:"state"`             // of the SDK
	Address   string `json:"address,omitempty"` // at the authorization server; not in the state
	Expires   int64  `json:"expires"`
}

// callback returns the callback of a new login.
func (w *Web) callback(key logins.Key) (*callback, error) {
	l := &webLogin{web: w, key: key, id: rand.Text()}
	return &callback{RedirectURL: w.base + webPath, path: webPath, web: l, results: make(chan result, 1)}, nil
}

// open makes the page of a login, and returns its address.
func (l *webLogin) open(back *callback, state, address string) (string, error) {
	page := webPage{ID: l.id, Principal: l.key.Principal, Server: l.key.Server, Browser: rand.Text(), State: state, Expires: time.Now().Add(webTime).Unix()}
	at, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the address of the login page cannot be read")
	}
	text, _ := json.Marshal(page) // texts always marshal
	query := at.Query()
	query.Set("state", l.web.keys.SealText(webAbout, text))
	at.RawQuery = query.Encode()
	page.Address = at.String()
	if l.web.bucket != nil {
		text, _ = json.Marshal(page)
		if _, err := l.web.bucket.WithTTL(webTime).Create(context.Background(), "page/"+l.id, l.web.keys.Seal(webAbout+l.id, text)); err != nil {
			return "", fmt.Errorf("keep the login for the other replicas: %w", err)
		}
	}
	l.mu.Lock()
	l.back, l.page = back, page
	if l.web.bucket != nil {
		var ctx context.Context
		ctx, l.stop = context.WithTimeout(context.Background(), webTime)
		l.wait.Go(func() { l.look(ctx) })
	}
	l.mu.Unlock()
	l.web.mu.Lock()
	defer l.web.mu.Unlock()
	l.web.logins[l.id] = l
	return l.web.base + WebPath + l.id, nil
}

// look waits for what a browser has brought to another replica.
func (l *webLogin) look(ctx context.Context) {
	for {
		select {
		case <-time.After(webPause):
		case <-ctx.Done():
			return
		}
		e, err := l.web.bucket.Get(ctx, "back/"+l.id)
		if err != nil {
			continue // there is none yet, or the state cannot be reached
		}
		text, err := l.web.keys.Open(webResult+l.id, e.Value)
		if err != nil {
			continue // of nobody who has the key
		}
		query, _ := url.ParseQuery(string(text))
		_ = l.accept(query) // its error is in the result
		return
	}
}

// accept takes what the browser brings to the login.
func (l *webLogin) accept(query url.Values) error {
	l.mu.Lock()
	back, state := l.back, l.page.State
	l.mu.Unlock()
	query.Set("state", state)
	return back.accept(query)
}

// close ends the login.
func (l *webLogin) close() {
	l.web.mu.Lock()
	delete(l.web.logins, l.id)
	l.web.mu.Unlock()
	l.mu.Lock()
	stop := l.stop
	l.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	l.wait.Wait()
	// Otherwise they expire.
	_ = l.web.bucket.Delete(context.Background(), "page/"+l.id, 0)
	_ = l.web.bucket.Delete(context.Background(), "back/"+l.id, 0)
}

// at returns the page of a login.
func (w *Web) at(ctx context.Context, id string) (page webPage, ok bool) {
	w.mu.Lock()
	l := w.logins[id]
	w.mu.Unlock()
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.page, true
	}
	if w.bucket == nil || len(id) != len(rand.Text()) || strings.ContainsAny(id, "./") {
		return page, false
	}
	e, err := w.bucket.Get(ctx, "page/"+id)
	if err != nil {
		return page, false
	}
	text, err := w.keys.Open(webAbout+id, e.Value)
	return page, err == nil && json.Unmarshal(text, &page) == nil && page.isOpen()
}

func (p webPage) isOpen() bool { return time.Now().Unix() < p.Expires }

// ServeHTTP serves the pages of logins to browsers, which have no token of the gateway.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h := rw.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	answer := func(status int, title, text string) {
		rw.WriteHeader(status)
		fmt.Fprintf(rw, page, title, text)
	}
	switch {
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		answer(http.StatusMethodNotAllowed, "Not allowed", "Only a browser comes here.")
	case r.URL.Path == webPath:
		w.serveBack(r, answer)
	default:
		about, ok := w.at(r.Context(), strings.TrimPrefix(r.URL.Path, WebPath))
		if !ok {
			answer(http.StatusNotFound, "No such login", "This login is over. Call the tool again for a new one.")
			return
		}
		http.SetCookie(rw, &http.Cookie{
			Name: webCookie + about.ID, Value: about.Browser, Path: WebPath, MaxAge: int(webTime / time.Second),
			HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(w.base, "https:"),
		})
		answer(http.StatusOK, "Log in to "+html.EscapeString(about.Server), fmt.Sprintf(
			`dynmcp will call <b>%s</b> with your login there whenever its user <b>%s</b> asks. Go on only if that is you, and if you have just been sent here by your own program.</p><p><a href="%s" rel="noreferrer">Log in</a>`,
			html.EscapeString(about.Server), html.EscapeString(about.Principal), html.EscapeString(about.Address)))
	}
}

// serveBack takes what a browser brings back from the authorization server.
func (w *Web) serveBack(r *http.Request, answer func(status int, title, text string)) {
	query := r.URL.Query()
	var about webPage
	text, err := w.keys.OpenText(webAbout, query.Get("state"))
	if err != nil || json.Unmarshal(text, &about) != nil || !about.isOpen() {
		answerBack(answer, errNoSuchLogin)
		return
	}
	if cookie, err := r.Cookie(webCookie + about.ID); err != nil || cookie.Value != about.Browser {
		answer(http.StatusForbidden, "Another browser", "This login was started in another browser. Open the address that dynmcp gave you in this one.")
		return
	}
	w.mu.Lock()
	l := w.logins[about.ID]
	w.mu.Unlock()
	switch {
	case l != nil:
		err = l.accept(query)
	case w.bucket == nil:
		err = errNoSuchLogin
	default:
		sealed := w.keys.Seal(webResult+about.ID, []byte(query.Encode()))
		if _, err = w.bucket.WithTTL(webTime).Create(r.Context(), "back/"+about.ID, sealed); errors.Is(err, records.ErrConflict) {
			err = errNoSuchLogin // it was there before
		}
		if err == nil && query.Get("code") == "" {
			err = errors.New("no code")
		}
	}
	answerBack(answer, err)
}

// Check returns why a record of a bucket of logins is none that a replica with these keys has written: a
// login, a lock, or one of a [Web].
func Check(keys *seal.Keys, e records.Record) error {
	kind, id, _ := strings.Cut(e.Key, "/")
	about := ""
	switch kind {
	case "page":
		about = webAbout
	case "back":
		about = webResult
	default:
		return logins.Check(keys, e)
	}
	_, err := keys.Open(about+id, e.Value)
	return err
}
