package run

import (
	"context"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

const (
	// reloadDelay is how long a config must be left alone before it is read: editors
	// write in several steps.
	reloadDelay = 200 * time.Millisecond
	// maxReloadDelay is how long edits without such a pause can put that off.
	maxReloadDelay = 2 * time.Second
	// watchInterval is how often it is checked that the directories that are watched
	// are still those of the config. No event says that a parent of theirs was
	// replaced, or a symbolic link on the way.
	watchInterval = 2 * time.Second
	// maxStopWait is how long the end of dynmcp waits for a reload under way: a look
	// at a dead network mount cannot be interrupted.
	maxStopWait = time.Second
)

// A reloader reloads the config when its files change, or on SIGHUP. A config that
// is invalid changes nothing but the log.
type reloader struct {
	from   *conf.Flags          // the profile of which asked changes
	paths  []string             // as they were found at the start
	pushed <-chan *schema.Files // takes the place of what was read; nil where nobody pushes
	agg    *aggregator.Aggregator
	lock   chan<- struct{} // says that the lock of approved tools may have changed
	asked  chan wish
	log    *slog.Logger

	recordAs func(*schema.Config) error // has calls recorded as a config asks for

	// Of the goroutine.
	read    *schema.Files          // as they were when they were last read
	watcher *fsnotify.Watcher      // nil if nothing is watched
	watched map[string]fs.FileInfo // the directories that are
	failed  bool                   // to watch one of them; said once
}

// A wish is for another profile. done is told how that went.
type wish struct {
	profile string
	done    chan<- error
}

// use has the run serve the servers of a profile.
func (r *reloader) use(ctx context.Context, profile string) error {
	done := make(chan error, 1)
	select {
	case r.asked <- wish{profile, done}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start follows the config until stop is called, which waits for the end, but not
// for a file system that hangs. Without watch only SIGHUP counts.
func (r *reloader) start(watch bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer signal.Stop(hangup)
		defer func() {
			if p := recover(); p != nil {
				r.log.Error("panic, the config is not reloaded any more", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		r.run(ctx, hangup, watch)
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(maxStopWait):
			r.log.Warn("the config's file system hangs, ending without it")
		}
	}
}

func (r *reloader) run(ctx context.Context, hangup <-chan os.Signal, watch bool) {
	var due <-chan time.Time // when the files are compared with what was read
	var deadline time.Time   // what edits cannot put it off beyond
	schedule := func() {
		if due == nil {
			deadline = time.Now().Add(maxReloadDelay)
		}
		due = time.After(min(reloadDelay, time.Until(deadline)))
	}
	// Channels that are nil, where nothing is watched, are never ready.
	var events <-chan fsnotify.Event
	var errs <-chan error
	var check <-chan time.Time
	if watch && r.openWatcher() {
		defer r.watcher.Close()
		ticker := time.NewTicker(watchInterval)
		defer ticker.Stop()
		events, errs, check = r.watcher.Events, r.watcher.Errors, ticker.C
		r.watch()
		schedule() // for changes before that
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			conf.References.Forget()
			r.watch()
			r.reload(ctx, true)
		case r.read = <-r.pushed:
			r.reload(ctx, true)
		case w := <-r.asked:
			before := r.from.Profile
			r.from.Profile = w.profile
			err := r.apply()
			if err != nil {
				r.from.Profile = before
			}
			w.done <- err
		case event := <-events:
			if _, ok := r.watched[event.Name]; ok {
				r.watched[event.Name] = nil // moved or removed, and the watch with it
			}
			// Any file counts, since a link on the way to the config may have changed,
			// but others do not put off what is due.
			if due == nil || slices.Contains(r.files(), event.Name) {
				schedule()
			}
		case err := <-errs:
			r.log.Warn("events of the config's directories were lost, looking at its files", "err", err)
			schedule()
		case <-check:
			if r.watch() {
				schedule()
			}
		case <-due:
			due = nil
			r.watch()
			r.reload(ctx, false)
		}
	}
}

// openWatcher opens the watcher, or logs why that cannot be.
func (r *reloader) openWatcher() bool {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		r.log.Warn("the config is not watched; send SIGHUP to reload it", "err", err)
		return false
	}
	r.watcher = watcher
	return true
}

// watch watches the directories of the config's files: editors replace the file
// itself. It reports whether they are others than were watched before. What changed
// in them earlier is for the caller to find out.
func (r *reloader) watch() (changed bool) {
	if r.watcher == nil {
		return false
	}
	dirs := map[string]fs.FileInfo{}
	for _, file := range r.files() {
		dir := filepath.Dir(file)
		if info, err := os.Stat(dir); err == nil {
			dirs[dir] = info
		}
	}
	if maps.EqualFunc(dirs, r.watched, os.SameFile) {
		return false
	}
	for dir := range r.watched {
		_ = r.watcher.Remove(dir) // it may be gone
	}
	for dir := range dirs {
		if err := r.watcher.Add(dir); err != nil {
			delete(dirs, dir) // so that it is tried again
			if !r.failed {
				r.failed = true
				r.log.Warn("the config is not watched; send SIGHUP to reload it", "dir", dir, "err", err)
			}
		}
	}
	r.watched = dirs
	return true
}

// files returns what a config is read from, its lock, and the targets of links.
func (r *reloader) files() []string {
	files := append(slices.Clone(r.paths), r.from.EnvFile)
	if r.from.EnvFile == "" {
		files[len(r.paths)] = ".env"
		for _, path := range r.paths {
			files = append(files, schema.EnvFileBeside(path))
		}
	}
	for _, path := range r.paths {
		files = append(files, pins.FileOf(path))
	}
	var all []string
	for _, file := range files {
		if path, err := filepath.Abs(file); err == nil {
			all = append(all, path)
		}
		if path, err := filepath.EvalSymlinks(file); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				all = append(all, path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// reload reads the files and, if one was changed or always is set, applies them.
// When ctx ends it does not wait for a file system that hangs. The lock of approved tools,
// which lies beside a config, is read again in any case.
func (r *reloader) reload(ctx context.Context, always bool) {
	next, changed := r.read.Reread(ctx)
	defer func() {
		select {
		case r.lock <- struct{}{}:
		default: // it has not been read since the last time
		}
	}()
	if ctx.Err() != nil || !always && !changed {
		return
	}
	r.read = next
	if err := r.apply(); err != nil {
		r.log.Error("config not reloaded, the last one stays", "err", err)
	}
}

// apply applies what was read.
func (r *reloader) apply() error {
	cfg, err := conf.LoadFiles(r.read)
	if err == nil {
		err = r.agg.Apply(cfg)
	}
	if err != nil {
		return err
	}
	if err := r.recordAs(cfg); err != nil {
		r.log.Error("calls are recorded as before", "err", err)
	}
	r.log.Info("config reloaded", "servers", len(cfg.Servers))
	for _, warning := range cfg.Warnings {
		r.log.Warn(warning)
	}
	_ = checkCommands(cfg, false, r.log) // it logs; the run goes on
	return nil
}
