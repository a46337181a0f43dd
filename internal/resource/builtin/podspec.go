package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// or sets *to if it is empty.
func or[T comparable](to *T, value T) {
	var empty T
	if *to == empty {
		*to = value
	}
}

// orNew makes *to point to value if it points nowhere.
func orNew[T any](to **T, value T) {
	if *to == nil {
		*to = &value
	}
}

// filesMode is the mode of files in a volume that says none: 0644.
const filesMode = int32(0o644)

const tokenLastsSeconds = int64(3600)

// fillInPodSpec fills in what pods and templates of pods share (rules B48, B64).
func fillInPodSpec(s *corev1.PodSpec) {
	or(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	or(&s.DNSPolicy, corev1.DNSClusterFirst)
	or(&s.RestartPolicy, corev1.RestartPolicyAlways)
	or(&s.SchedulerName, corev1.DefaultSchedulerName)
	orNew(&s.SecurityContext, corev1.PodSecurityContext{})
	orNew(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	for i := range s.Volumes {
		fillInVolume(&s.Volumes[i])
	}
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			fillInContainer(&cs[i])
		}
	}
	for i := range s.EphemeralContainers {
		fillInContainer((*corev1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundUp(s.Overhead)
	if s.Resources != nil {
		roundUp(s.Resources.Limits)
		roundUp(s.Resources.Requests)
	}
}

func fillInContainer(c *corev1.Container) {
	or(&c.ImagePullPolicy, pullPolicyOf(c.Image))
	or(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	or(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		or(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			or(&from.FieldRef.APIVersion, "v1")
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		fillInProbe(p)
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil {
			fillInHTTP(h.HTTPGet)
		}
	}
}

// pullPolicyOf says when an image is pulled: always if its tag may come to mean another one.
func pullPolicyOf(image string) corev1.PullPolicy {
	name, _, hasDigest := strings.Cut(image, "@")
	tag := ""
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		tag = name[colon+1:]
	}
	if image != "" && (tag == "latest" || tag == "" && !hasDigest) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func fillInProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	or(&p.TimeoutSeconds, 1)
	or(&p.PeriodSeconds, 10)
	or(&p.SuccessThreshold, 1)
	or(&p.FailureThreshold, 3)
	fillInHTTP(p.HTTPGet)
	if p.GRPC != nil {
		orNew(&p.GRPC.Service, "")
	}
}

func fillInHTTP(h *corev1.HTTPGetAction) {
	if h == nil {
		return
	}
	or(&h.Path, "/")
	or(&h.Scheme, corev1.URISchemeHTTP)
}

func fillInVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.Secret != nil:
		orNew(&v.Secret.DefaultMode, filesMode)
	case v.ConfigMap != nil:
		orNew(&v.ConfigMap.DefaultMode, filesMode)
	case v.DownwardAPI != nil:
		orNew(&v.DownwardAPI.DefaultMode, filesMode)
		fillInFieldRefs(v.DownwardAPI.Items)
	case v.HostPath != nil:
		orNew(&v.HostPath.Type, corev1.HostPathUnset)
	case v.ISCSI != nil:
		or(&v.ISCSI.ISCSIInterface, "default")
	case v.Image != nil:
		or(&v.Image.PullPolicy, pullPolicyOf(v.Image.Reference))
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		fillInClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	case v.Projected != nil:
		orNew(&v.Projected.DefaultMode, filesMode)
		for _, from := range v.Projected.Sources {
			if from.ServiceAccountToken != nil {
				orNew(&from.ServiceAccountToken.ExpirationSeconds, tokenLastsSeconds)
			}
			if from.DownwardAPI != nil {
				fillInFieldRefs(from.DownwardAPI.Items)
			}
		}
	}
}

func fillInFieldRefs(files []corev1.DownwardAPIVolumeFile) {
	for _, f := range files {
		if f.FieldRef != nil {
			or(&f.FieldRef.APIVersion, "v1")
		}
	}
}

// fillInClaimSpec fills in the specification of a claim for a volume (rule B67).
func fillInClaimSpec(s *corev1.PersistentVolumeClaimSpec) {
	orNew(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(s.Resources.Limits)
	roundUp(s.Resources.Requests)
}

// roundUp makes quantities whole thousandths, which is as fine as they are kept.
func roundUp(l corev1.ResourceList) {
	const milli = -3
	for name, q := range l {
		q.RoundUp(milli)
		l[name] = q
	}
}

// fillInPod fills in what only a pod has, and no template of one (rules B48, B64).
func fillInPod(p *corev1.Pod) {
	s := &p.Spec
	if t := s.TerminationGracePeriodSeconds; t != nil && *t < 0 {
		*t = 1
	}
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			fillInRequests(&cs[i].Resources)
			for j := range cs[i].Ports {
				if s.HostNetwork {
					or(&cs[i].Ports[j].HostPort, cs[i].Ports[j].ContainerPort)
				}
			}
		}
	}
	fillInPodSpec(s)
	orNew(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	fillInIPs(&p.Status)
}

// fillInRequests takes for requests what limits say.
func fillInRequests(r *corev1.ResourceRequirements) {
	if r.Limits != nil {
		r.Requests = filledFrom(r.Requests, r.Limits)
	}
}

// fillInIPs keeps the one address and the list in step; the one address wins (rule B51).
func fillInIPs(s *corev1.PodStatus) {
	switch {
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
}

// qualityOf is the class of service that a pod gets, from what its containers ask for of CPU and
// memory: Guaranteed if all say limits and ask for just that, BestEffort if none says anything.
func qualityOf(s *corev1.PodSpec) corev1.PodQOSClass {
	some, all := false, true
	judge := func(r corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, limited := r.Limits[name]
			request, requested := r.Requests[name]
			limited, requested = limited && !limit.IsZero(), requested && !request.IsZero()
			some = some || limited || requested
			all = all && limited && (!requested || request.Cmp(limit) == 0)
		}
	}
	if r := s.Resources; r != nil && len(r.Limits)+len(r.Requests) > 0 {
		judge(*r)
	} else {
		for _, c := range s.InitContainers {
			judge(c.Resources)
		}
		for _, c := range s.Containers {
			judge(c.Resources)
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case all:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
