// Package deploy tests the examples in its directory with the libraries of Docker Compose, kubectl
// and NATS, without a network, a container or a cluster.
package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// dynmcp is the program of this clone, which TestMain builds.
var dynmcp string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dynmcp-deploy")
	if err != nil {
		panic(err)
	}
	dynmcp = filepath.Join(dir, "dynmcp")
	build := exec.Command("go", "build", "-o", dynmcp, "./cmd/dynmcp")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// example returns a copy of this directory, with generated secrets.
func example(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"compose/secrets"}, {"kubernetes/example/secrets", "-names", "nats,nats.dynmcp.svc,*.nats-headless"}} {
		args := append([]string{"run", "./secrets", "-dynmcp", dynmcp, "-out", filepath.Join(dir, c[0])}, c[1:]...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("secrets: %s%v", out, err)
		}
	}
	return dir
}

// accepts fails the test if dynmcp does not accept a command line.
func accepts(t *testing.T, words []string) {
	t.Helper()
	if out, err := exec.Command(dynmcp, append(words, "--help")...).CombinedOutput(); err != nil {
		t.Errorf("dynmcp %s: %s%v", strings.Join(words, " "), out, err)
	}
}

// flags returns the flags of a command line, by name.
func flags(words []string) map[string]string {
	all := map[string]string{}
	for _, word := range words {
		if name, value, ok := strings.Cut(strings.TrimPrefix(word, "--"), "="); ok {
			all[name] = value
		}
	}
	return all
}

func TestCompose(t *testing.T) {
	dir := filepath.Join(example(t), "compose")
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithName("dynmcp"), cli.WithEnv([]string{"DYNMCP_GROUP=1000"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err) // also for keys that the specification lacks
	}
	for name, file := range project.Secrets {
		if _, err := os.Stat(file.File); err != nil {
			t.Errorf("secret %s: %v", name, err)
		}
	}
	for name, file := range project.Configs {
		if _, err := os.Stat(file.File); err != nil {
			t.Errorf("config %s: %v", name, err)
		}
	}
	replicas := 0
	for name, service := range project.Services {
		if service.HealthCheck == nil && name != "balancer" {
			t.Errorf("%s has no health check", name)
		}
		if !service.ReadOnly || !slices.Contains(service.CapDrop, "ALL") {
			t.Errorf("%s has more privileges than it needs", name)
		}
		if !strings.HasPrefix(name, "replica-") {
			continue
		}
		replicas++
		accepts(t, service.Command)
		given := flags(service.Command)
		if given["replica"] != name || given["peer-advertise"] != name+":7443" || service.Hostname != name {
			t.Errorf("%s is called %s and reached at %s", name, given["replica"], given["peer-advertise"])
		}
		mounted := mounts(service)
		for _, flag := range []string{"config", "cluster-ca", "cluster-creds", "cluster-key"} {
			if !mounted[given[flag]] {
				t.Errorf("%s: --%s=%s: no such file there, but %v", name, flag, given[flag], slices.Sorted(maps.Keys(mounted)))
			}
		}
		for _, url := range strings.Split(given["cluster"], ",") {
			node := strings.TrimSuffix(strings.TrimPrefix(url, "tls://"), ":4222")
			if _, ok := project.Services[node]; !ok {
				t.Errorf("%s: no service %s", name, node)
			}
		}
	}
	balancer, err := os.ReadFile(filepath.Join(dir, "haproxy.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range project.Services {
		if behind := strings.Contains(string(balancer), "server "+name+" "+name+":8080\n"); behind != strings.HasPrefix(name, "replica-") {
			t.Errorf("%s behind the balancer: %t", name, behind)
		}
	}
	if replicas != 3 {
		t.Errorf("got %d replicas", replicas)
	}
	loads(t, filepath.Join(dir, "mcp.json"))
}

// mounts returns the paths of secrets and configs in a container.
func mounts(service types.ServiceConfig) map[string]bool {
	all := map[string]bool{}
	for _, secret := range service.Secrets {
		if secret.Target == "" {
			secret.Target = secret.Source
		}
		if !filepath.IsAbs(secret.Target) {
			secret.Target = "/run/secrets/" + secret.Target
		}
		all[secret.Target] = true
	}
	for _, config := range service.Configs {
		all[config.Target] = true
	}
	return all
}

// loads fails the test if dynmcp rejects a config.
func loads(t *testing.T, path string) {
	t.Helper()
	ls := exec.Command(dynmcp, "ls", "-c", path)
	ls.Env = append(os.Environ(), "DYNMCP_TOKEN=secret")
	if out, err := ls.CombinedOutput(); err != nil {
		t.Errorf("%s: %s%v", path, out, err)
	}
}

// kinds are the types of manifests, which are decoded strictly: an unknown field is an error.
var kinds = map[string]func() any{
	"v1/Namespace":                           func() any { return &corev1.Namespace{} },
	"v1/ConfigMap":                           func() any { return &corev1.ConfigMap{} },
	"v1/Secret":                              func() any { return &corev1.Secret{} },
	"v1/Service":                             func() any { return &corev1.Service{} },
	"apps/v1/Deployment":                     func() any { return &appsv1.Deployment{} },
	"policy/v1/PodDisruptionBudget":          func() any { return &policyv1.PodDisruptionBudget{} },
	"autoscaling/v2/HorizontalPodAutoscaler": func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1/NetworkPolicy":     func() any { return &networkingv1.NetworkPolicy{} },
	"networking.k8s.io/v1/Ingress":           func() any { return &networkingv1.Ingress{} },
}

// build returns the objects that kustomize makes of a directory, by kind and name.
func build(t *testing.T, dir string) map[string]any {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, resource := range made.Resources() {
		text := resource.MustYaml()
		kind := resource.GetApiVersion() + "/" + resource.GetKind()
		make, known := kinds[kind]
		if !known {
			t.Errorf("no type for %s", kind)
			continue
		}
		object := make()
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Errorf("%s %s: %v", kind, resource.GetName(), err)
		}
		all[resource.GetKind()+"/"+resource.GetName()] = object
	}
	return all
}

// get returns the only object of a kind whose name is name, or begins with it and a hash.
func get[T any](t *testing.T, all map[string]any, key string) *T {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == key || strings.HasPrefix(name, key+"-") && len(name) == len(key)+len("-1234567890") {
			return all[name].(*T)
		}
	}
	t.Fatalf("no %s in %v", key, slices.Sorted(maps.Keys(all)))
	return nil
}

func TestKubernetes(t *testing.T) {
	dir := filepath.Join(example(t), "kubernetes")
	build(t, filepath.Join(dir, "base")) // by itself too
	all := build(t, filepath.Join(dir, "example"))
	deployment := get[appsv1.Deployment](t, all, "Deployment/dynmcp")
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	accepts(t, container.Args)
	given := flags(container.Args)

	// Variables of the command line, and files.
	env := map[string]string{}
	for _, v := range container.Env {
		env[v.Name] = v.Value
	}
	for _, word := range container.Args {
		if _, name, ok := strings.Cut(word, "$("); ok {
			name, _, _ = strings.Cut(name, ")")
			if _, ok := env[name]; !ok {
				t.Errorf("%s: no such variable", word)
			}
		}
	}
	for name, flag := range map[string]string{"DYNMCP_CLUSTER": "cluster", "DYNMCP_CLUSTER_CA": "cluster-ca", "DYNMCP_CLUSTER_CREDS": "cluster-creds", "DYNMCP_CLUSTER_KEY": "cluster-key"} {
		if env[name] == "" || env[name] != given[flag] {
			t.Errorf("%s is %q, --%s %q", name, env[name], flag, given[flag])
		}
	}
	files := map[string]bool{}
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		volume, ok := volumes[mount.Name]
		if !ok {
			t.Fatalf("no volume %s", mount.Name)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			switch {
			case source.ConfigMap != nil:
				for key := range get[corev1.ConfigMap](t, all, "ConfigMap/"+source.ConfigMap.Name).Data {
					files[mount.MountPath+"/"+key] = true
				}
			case source.Secret != nil:
				data := get[corev1.Secret](t, all, "Secret/"+source.Secret.Name).Data
				for _, item := range source.Secret.Items {
					if _, ok := data[item.Key]; !ok {
						t.Errorf("%s has no key %s", source.Secret.Name, item.Key)
					}
					files[mount.MountPath+"/"+item.Path] = true
				}
				for key := range data {
					if source.Secret.Items == nil {
						files[mount.MountPath+"/"+key] = true
					}
				}
			}
		}
	}
	for _, path := range []string{given["config"], filepath.Join(filepath.Dir(given["config"]), ".env"), given["cluster-ca"], given["cluster-creds"], given["cluster-key"]} {
		if !files[path] {
			t.Errorf("%s is not among %v", path, slices.Sorted(maps.Keys(files)))
		}
	}

	// Ports, by number in the command line and by name elsewhere.
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	for name, flag := range map[string]string{"http": "http", "peer": "peer-addr"} {
		if given[flag] != fmt.Sprintf("0.0.0.0:%d", ports[name]) {
			t.Errorf("--%s=%s, port %s is %d", flag, given[flag], name, ports[name])
		}
	}
	if want := fmt.Sprintf("$(POD_IP):%d", ports["peer"]); given["peer-advertise"] != want {
		t.Errorf("--peer-advertise=%s, want %s", given["peer-advertise"], want)
	}
	named := func(what string, port intstr.IntOrString) {
		if _, ok := ports[port.StrVal]; port.Type == intstr.String && !ok {
			t.Errorf("%s: no port %s", what, port.StrVal)
		}
	}
	named("readiness", container.ReadinessProbe.HTTPGet.Port)
	named("start", container.StartupProbe.HTTPGet.Port)

	// Selectors select the pods of replicas.
	selects := func(what string, selector *metav1.LabelSelector) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return false
		}
		return s.Matches(labels.Set(pod.Labels))
	}
	if !selects("deployment", deployment.Spec.Selector) || !selects("budget", get[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget/dynmcp").Spec.Selector) {
		t.Error("the pods are not selected")
	}
	for _, name := range []string{"dynmcp", "dynmcp-replicas"} {
		service := get[corev1.Service](t, all, "Service/"+name)
		if !selects(name, &metav1.LabelSelector{MatchLabels: service.Spec.Selector}) {
			t.Errorf("service %s selects no replica", name)
		}
		for _, port := range service.Spec.Ports {
			named(name, port.TargetPort)
		}
	}
	policy, nats := get[networkingv1.NetworkPolicy](t, all, "NetworkPolicy/dynmcp").Spec, get[networkingv1.NetworkPolicy](t, all, "NetworkPolicy/dynmcp-nats").Spec
	if !selects("policy", &policy.PodSelector) || selects("policy of NATS", &nats.PodSelector) {
		t.Error("the policies select other pods")
	}
	for _, rule := range policy.Ingress {
		for _, port := range rule.Ports {
			named("policy", *port.Port)
			if from := rule.From[0].PodSelector; port.Port.StrVal == "peer" && (from == nil || !selects("peer", from)) {
				t.Error("the peer port is open to pods other than replicas")
			}
		}
	}
	if !selects("clients of NATS", nats.Ingress[0].From[0].PodSelector) || nats.Ingress[0].Ports[0].Port.IntVal != 4222 {
		t.Error("replicas may not reach NATS")
	}
	scaled := get[autoscalingv2.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler/dynmcp").Spec.ScaleTargetRef
	if scaled.Name != deployment.Name || scaled.Kind != "Deployment" || scaled.APIVersion != "apps/v1" || deployment.Spec.Replicas != nil {
		t.Errorf("the autoscaler does not scale the deployment: %v", scaled)
	}

	// The requirements of a namespace that is "restricted".
	security := container.SecurityContext
	if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !slices.Contains(security.Capabilities.Drop, "ALL") ||
		!*pod.Spec.SecurityContext.RunAsNonRoot || pod.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod has more privileges than it needs: %+v", security)
	}
	for name, config := range all {
		if c, ok := config.(*corev1.ConfigMap); ok {
			path := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(path, []byte(c.Data["mcp.json"]), 0o600); err != nil {
				t.Fatal(err)
			}
			if loads(t, path); !strings.Contains(c.Data["mcp.json"], "mcp.example.com") {
				t.Errorf("%s lacks the host of the Ingress", name)
			}
		}
	}

	// The secrets in the chart's values have the required keys.
	var values chartValues
	text, err := os.ReadFile(filepath.Join(dir, "nats.values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{values.Config.Nats.TLS.SecretName, values.Config.Cluster.TLS.SecretName, values.TLSCA.SecretName} {
		data := all["Secret/"+name].(*corev1.Secret).Data // without a hash in its name, which the chart has
		if data["tls.crt"] == nil || data["tls.key"] == nil || data["ca.crt"] == nil {
			t.Errorf("%s lacks a key", name)
		}
	}
	var accounts struct {
		Config struct{ Merge map[string]json.RawMessage }
	}
	text, err = os.ReadFile(filepath.Join(dir, "example/secrets/nats-accounts.values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &accounts); err != nil || accounts.Config.Merge["operator"] == nil || accounts.Config.Merge["resolver_preload"] == nil {
		t.Errorf("%v: %s", err, text)
	}
}

// chartValues are the values of NATS's chart, from its templates and tests of line 1.0 (for storage
// and cluster also from the published values of 2.14.6). Helm ignores a value that the chart does not
// have.
type chartValues struct {
	Config struct {
		Cluster struct {
			Enabled  bool
			Replicas int
			TLS      chartTLS
			Merge    map[string]any // into the config of a node
		}
		Jetstream struct {
			Enabled   bool
			FileStore struct {
				PVC     struct{ Size string }
				MaxSize string
			}
			MemoryStore struct{ Enabled bool }
		}
		Nats struct{ TLS chartTLS }
	}
	TLSCA       chartTLS
	Container   struct{ Env, Merge map[string]any }
	PodTemplate struct{ TopologySpreadConstraints map[string]any }
	NatsBox     struct{ Enabled bool }
}

type chartTLS struct {
	Enabled    bool
	SecretName string
	Merge      map[string]any
}
