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
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

const (
	// reloadDelay debounces events, because editors write a file in several steps.
	reloadDelay = 200 * time.Millisecond
	// maxReloadDelay limits the delay by continuous edits.
	maxReloadDelay = 2 * time.Second
	// watchInterval is the interval at which the watched directories are compared with those of the
	// config. No event reports the replacement of a parent directory, or of a symbolic link on the
	// path.
	watchInterval = 2 * time.Second
	// maxStopWait limits the wait for a reload in progress at the end, because access to a dead
	// network mount cannot be interrupted.
	maxStopWait = time.Second
)

// A reloader reloads the config when its files change, or on SIGHUP. An invalid config is only logged.
type reloader struct {
	from   *conf.Flags          // a wish changes its profile
	paths  []string             // the config files, found at the start
	pushed <-chan *schema.Files // new versions of a cluster's config; nil without one
	agg    *aggregator.Aggregator
	parts  selfhost.Parts
	trust  module.Trust    // may be nil
	lock   chan<- struct{} // signals a possible change of what was approved
	asked  chan wish
	log    *slog.Logger

	// Used only by the goroutine.
	read    *schema.Files          // the files as last read
	watcher *fsnotify.Watcher      // nil if nothing is watched
	watched map[string]fs.FileInfo // the watched directories
	failed  bool                   // a directory could not be watched, which is logged once
}

// A wish is a request for another profile. done receives the result.
type wish struct {
	profile string
	done    chan<- error
}

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

// start reloads the config until stop is called. stop waits for the goroutine, unless a file system
// hangs. Without watch, changes of files are ignored.
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
	var due <-chan time.Time // fires when the files are read again; nil if no event is pending
	var deadline time.Time   // the latest time for due
	schedule := func() {
		if due == nil {
			deadline = time.Now().Add(maxReloadDelay)
		}
		due = time.After(min(reloadDelay, time.Until(deadline)))
	}
	// Channels that are nil, because nothing is watched, are never ready.
	var events <-chan fsnotify.Event
	var errs <-chan error
	var check <-chan time.Time
	if watch {
		var err error
		if r.watcher, err = fsnotify.NewWatcher(); err != nil {
			r.log.Warn("the config is not watched; send SIGHUP to reload it", "err", err)
		} else {
			defer r.watcher.Close()
			ticker := time.NewTicker(watchInterval)
			defer ticker.Stop()
			events, errs, check = r.watcher.Events, r.watcher.Errors, ticker.C
			r.watch()
			schedule() // for changes before that
		}
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
				r.watched[event.Name] = nil // the directory was moved or removed, and its watch with it
			}
			// Any file counts, because a link on the path to the config may have changed, but
			// other files do not delay a scheduled reload.
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

// watch watches the directories of the config's files, because editors replace the file itself. It
// reports whether the directories have changed. Then the caller must read the files, which may have
// changed before the watch began.
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
		_ = r.watcher.Remove(dir) // it may already be gone
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

// files returns the absolute paths of the config's files, of their .env files and what was approved for them, and of the
// targets of links.
func (r *reloader) files() []string {
	files := append(slices.Clone(r.paths), r.from.EnvFile)
	if r.from.EnvFile == "" {
		files[len(r.paths)] = ".env"
		for _, path := range r.paths {
			files = append(files, schema.EnvFileBeside(path))
		}
	}
	if r.trust != nil {
		for _, path := range r.paths {
			files = append(files, r.trust.File(path))
		}
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

// reload reads the files and, if one has changed or always is set, applies them. When ctx ends, it
// does not wait for a file system that hangs. It always has what was approved read again.
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

func (r *reloader) apply() error {
	cfg, err := conf.LoadFiles(r.read)
	if err == nil {
		err = r.agg.Apply(cfg)
	}
	if err != nil {
		return err
	}
	if err := r.parts.Follow(cfg); err != nil {
		r.log.Error("a module keeps its settings", "err", err)
	}
	r.log.Info("config reloaded", "servers", len(cfg.Servers))
	for _, warning := range cfg.Warnings {
		r.log.Warn(warning)
	}
	_ = checkCommands(cfg, false, r.log) // errors are logged, and the run continues
	return nil
}
