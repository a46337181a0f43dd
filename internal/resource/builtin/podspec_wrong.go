package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wrongLabel says why value is no DNS label.
func wrongLabel(value string, path *field.Path) (errs field.ErrorList) {
	for _, why := range utilvalidation.IsDNS1123Label(value) {
		errs = append(errs, field.Invalid(path, value, why))
	}
	return errs
}

// wrongSubdomain says why value is no DNS subdomain.
func wrongSubdomain(value string, path *field.Path) (errs field.ErrorList) {
	for _, why := range utilvalidation.IsDNS1123Subdomain(value) {
		errs = append(errs, field.Invalid(path, value, why))
	}
	return errs
}

// oneOf says that value is none of those that there are; they are listed in order.
func oneOf[T ~string](value T, path *field.Path, values ...T) field.ErrorList {
	switch {
	case slices.Contains(values, value):
		return nil
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

// negative says that n, if there is one, is less than nothing.
func negative[N int32 | int64](n *N, path *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	return validation.ValidateNonnegativeField(int64(*n), path)
}

var (
	restartPolicies = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	dnsPolicies     = []corev1.DNSPolicy{corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone}
	protocols       = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
	pullPolicies    = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	messagePolicies = []corev1.TerminationMessagePolicy{corev1.TerminationMessageFallbackToLogsOnError, corev1.TerminationMessageReadFile}
)

// wrongPodSpec says what is wrong with the specification of a pod or of a template (rule B16).
func wrongPodSpec(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs, volumes := wrongVolumes(s.Volumes, path.Child("volumes"))
	names := map[string]bool{}
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	errs = append(errs, wrongContainers(s.Containers, path.Child("containers"), names, volumes)...)
	errs = append(errs, wrongContainers(s.InitContainers, path.Child("initContainers"), names, volumes)...)
	errs = append(errs, oneOf(s.RestartPolicy, path.Child("restartPolicy"), restartPolicies...)...)
	errs = append(errs, oneOf(s.DNSPolicy, path.Child("dnsPolicy"), dnsPolicies...)...)
	errs = append(errs, metav1validation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			errs = append(errs, field.Required(path.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	for _, name := range []struct {
		field, value string
		wrong        func(string, *field.Path) field.ErrorList
	}{
		{"serviceAccountName", s.ServiceAccountName, wrongSubdomain}, {"nodeName", s.NodeName, wrongSubdomain},
		{"hostname", s.Hostname, wrongLabel}, {"subdomain", s.Subdomain, wrongLabel},
		{"priorityClassName", s.PriorityClassName, wrongSubdomain},
	} {
		if name.value != "" {
			errs = append(errs, name.wrong(name.value, path.Child(name.field))...)
		}
	}
	if n := s.ActiveDeadlineSeconds; n != nil && (*n < 1 || *n > 1<<31-1) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *n, utilvalidation.InclusiveRangeError(1, 1<<31-1)))
	}
	return append(errs, negative(s.TerminationGracePeriodSeconds, path.Child("terminationGracePeriodSeconds"))...)
}

// wrongVolumes also returns the names that there are.
func wrongVolumes(volumes []corev1.Volume, path *field.Path) (errs field.ErrorList, names map[string]bool) {
	names = map[string]bool{}
	for i, v := range volumes {
		name := path.Index(i).Child("name")
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(name, ""))
		case names[v.Name]:
			errs = append(errs, field.Duplicate(name, v.Name))
		default:
			errs = append(errs, wrongLabel(v.Name, name)...)
		}
		names[v.Name] = true
	}
	return errs, names
}

func wrongContainers(containers []corev1.Container, path *field.Path, names, volumes map[string]bool) (errs field.ErrorList) {
	for i := range containers {
		c, path := &containers[i], path.Index(i)
		if c.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else {
			errs = append(errs, wrongLabel(c.Name, path.Child("name"))...)
		}
		if names[c.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
		}
		names[c.Name] = true
		errs = append(errs, wrongContainer(c, path, volumes)...)
	}
	return errs
}

func wrongContainer(c *corev1.Container, path *field.Path, volumes map[string]bool) (errs field.ErrorList) {
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(c.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), messagePolicies...)...)
	errs = append(errs, wrongPorts(c.Ports, path.Child("ports"))...)
	for i, env := range c.Env {
		path := path.Child("env").Index(i).Child("name")
		if env.Name == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		for _, why := range utilvalidation.IsRelaxedEnvVarName(env.Name) {
			errs = append(errs, field.Invalid(path, env.Name, why))
		}
	}
	for i, mount := range c.VolumeMounts {
		path := path.Child("volumeMounts").Index(i)
		switch {
		case mount.Name == "":
			errs = append(errs, field.Required(path.Child("name"), ""))
		case !volumes[mount.Name]:
			errs = append(errs, field.NotFound(path.Child("name"), mount.Name))
		}
		if mount.MountPath == "" {
			errs = append(errs, field.Required(path.Child("mountPath"), ""))
		}
	}
	errs = append(errs, oneOf(c.ImagePullPolicy, path.Child("imagePullPolicy"), pullPolicies...)...)
	return append(errs, wrongResources(c.Resources, path.Child("resources"))...)
}

func wrongPorts(ports []corev1.ContainerPort, path *field.Path) (errs field.ErrorList) {
	names := map[string]bool{}
	for i, p := range ports {
		path := path.Index(i)
		if p.Name != "" {
			for _, why := range utilvalidation.IsValidPortName(p.Name) {
				errs = append(errs, field.Invalid(path.Child("name"), p.Name, why))
			}
			if names[p.Name] {
				errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(path.Child("containerPort"), ""))
		} else {
			errs = append(errs, wrongPort(p.ContainerPort, path.Child("containerPort"))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, wrongPort(p.HostPort, path.Child("hostPort"))...)
		}
		errs = append(errs, oneOf(p.Protocol, path.Child("protocol"), protocols...)...)
	}
	return errs
}

func wrongPort(port int32, path *field.Path) (errs field.ErrorList) {
	for _, why := range utilvalidation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, why))
	}
	return errs
}

// wrongResources says that a quantity is negative, or that more is asked for than allowed.
func wrongResources(r corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	const tooLittle = "must be greater than or equal to 0"
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		if q := r.Limits[name]; q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), q.String(), tooLittle))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		q := r.Requests[name]
		if q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), q.String(), tooLittle))
		}
		if limit, limited := r.Limits[name]; limited && q.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), q.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

// wrongTemplate says what is wrong with a template of pods.
func wrongTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	return append(errs, wrongPodSpec(&t.Spec, path.Child("spec"))...)
}
