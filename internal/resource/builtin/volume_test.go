package builtin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/registry"
)

// volumeOf is a volume that is kept in some way, with that specification beside.
func volumeOf(spec string) string {
	return `{"metadata":{"name":"a"},"spec":{` + spec + `,"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}}}`
}

// claimOf is a claim with that specification beside, and claimBound one that has got its volume.
func claimOf(size, spec string) string {
	return `{"metadata":{"name":"a"},"spec":{` + spec + `"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"` + size + `"}}}}`
}

func claimBound(size, spec string) string {
	return strings.TrimSuffix(claimOf(size, `"volumeName":"v",`+spec), "}") + `,"status":{"phase":"Bound","capacity":{"storage":"1Gi"},"currentVolumeAttributesClassName":"fast"}}`
}

const (
	onHost    = `"hostPath":{"path":"/d"}`
	fromClaim = `"dataSource":{"kind":"PersistentVolumeClaim","name":"b"},`
)

func TestVolumesAreFilledIn(t *testing.T) { // rule B67
	parts(t, []part{
		{"a volume stays when its claim goes", "PersistentVolume", "", "", volumeOf(onHost), "spec.persistentVolumeReclaimPolicy", `"Retain"`},
		{"it is a file system", "PersistentVolume", "", "", volumeOf(onHost), "spec.volumeMode", `"Filesystem"`},
		{"which waits, whatever is said", "PersistentVolume", "", "", strings.TrimSuffix(volumeOf(onHost), "}") + `,"status":{"phase":"Bound"}}`, "status.phase", `"Pending"`},
		{"since it came to be", "PersistentVolume", "", "", strings.Replace(volumeOf(onHost), `"name":"a"`, `"name":"a","creationTimestamp":"2020-01-02T03:04:05Z"`, 1),
			"status.lastPhaseTransitionTime", `"2020-01-02T03:04:05Z"`},
		{"a path may be anything", "PersistentVolume", "", "", volumeOf(onHost), "spec.hostPath.type", `""`},
		{"storage that few have left", "PersistentVolume", "", "", volumeOf(`"rbd":{"monitors":["m"],"image":"i"}`), "spec.rbd",
			`{"image":"i","keyring":"/etc/ceph/keyring","monitors":["m"],"pool":"rbd","user":"admin"}`},
		{"disks of a cloud", "PersistentVolume", "", "", volumeOf(`"azureDisk":{"diskName":"d","diskURI":"u"}`), "spec.azureDisk",
			`{"cachingMode":"ReadWrite","diskName":"d","diskURI":"u","fsType":"ext4","kind":"Shared","readOnly":false}`},
		{"rule B8: volumes have no generation", "PersistentVolume", "", volumeOf(onHost), volumeOf(onHost + `,"storageClassName":"x"`), "metadata.generation", ""},
		{"rule B10: the door for status of a volume leaves its place", "PersistentVolume", "status", volumeOf(onHost), volumeOf(`"hostPath":{"path":"/e"}`), "spec.hostPath.path", `"/d"`},
		{"the time of a phase stays as long as the phase", "PersistentVolume", "status", `{"status":{"phase":"Bound","lastPhaseTransitionTime":"2020-01-02T03:04:05Z"}}`,
			`{"status":{"phase":"Bound"}}`, "status.lastPhaseTransitionTime", `"2020-01-02T03:04:05Z"`},
		{"and is not that of another", "PersistentVolume", "status", `{"status":{"phase":"Bound","lastPhaseTransitionTime":"2020-01-02T03:04:05Z"}}`,
			`{"status":{"phase":"Released","lastPhaseTransitionTime":"2020-01-02T03:04:05Z"}}`, "status.lastPhaseTransitionTime", ""},
		{"whoever changes the phase may say when", "PersistentVolume", "status", `{"status":{"phase":"Bound"}}`,
			`{"status":{"phase":"Released","lastPhaseTransitionTime":"2020-01-02T03:04:05Z"}}`, "status.lastPhaseTransitionTime", `"2020-01-02T03:04:05Z"`},

		{"a claim waits", "PersistentVolumeClaim", "", "", claimBound("1Gi", ""), "status", `{"phase":"Pending"}`},
		{"for a file system", "PersistentVolumeClaim", "", "", claimOf("1Gi", ""), "spec.volumeMode", `"Filesystem"`},
		{"what is in it is said twice", "PersistentVolumeClaim", "", "", claimOf("1Gi", fromClaim), "spec.dataSourceRef", `{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"b"}`},
		{"the other way round too", "PersistentVolumeClaim", "", "", claimOf("1Gi", `"dataSourceRef":{"apiGroup":"x.example","kind":"Image","name":"b"},`), "spec.dataSource",
			`{"apiGroup":"x.example","kind":"Image","name":"b"}`},
		{"a snapshot may be in it", "PersistentVolumeClaim", "", "", claimOf("1Gi", `"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"b"},`),
			"spec.dataSourceRef.kind", `"VolumeSnapshot"`},
		{"what never could be in it is left out", "PersistentVolumeClaim", "", "", claimOf("1Gi", `"dataSource":{"apiGroup":"x.example","kind":"Image","name":"b"},`), "spec.dataSource", ""},
		{"so is what is elsewhere", "PersistentVolumeClaim", "", "", claimOf("1Gi", `"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"b","namespace":"c"},`), "spec.dataSourceRef", ""},
		{"an update may say it once", "PersistentVolumeClaim", "", claimOf("1Gi", fromClaim+`"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"b"},`), claimOf("1Gi", fromClaim),
			"spec.dataSourceRef.name", `"b"`},
		{"rule B10: the main door of a claim changes no status", "PersistentVolumeClaim", "", claimBound("1Gi", ""), claimOf("1Gi", `"volumeName":"v",`), "status.phase", `"Bound"`},
		{"rule B10: the door for status changes status", "PersistentVolumeClaim", "status", claimOf("1Gi", ""), claimBound("2Gi", ""), "status.phase", `"Bound"`},
		{"rule B10: and not the claim", "PersistentVolumeClaim", "status", claimOf("1Gi", ""), claimBound("2Gi", ""), "spec.resources.requests.storage", `"1Gi"`},
	})
}

func TestWhatIsWrongWithVolumes(t *testing.T) { // rules B16, B67
	const local = `"local":{"path":"/d"}`
	near := func(zone string) string {
		return local + `,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["` + zone + `"]}]}]}}`
	}
	refusals(t, []write{
		{"one on a host", "PersistentVolume", "", "", volumeOf(onHost), ""},
		{"one near a node", "PersistentVolume", "", "", volumeOf(near("a")), ""},
		{"one of a driver", "PersistentVolume", "", "", volumeOf(`"csi":{"driver":"x.example","volumeHandle":"h"},"volumeAttributesClassName":"fast"`), ""},
		{"a volume has a size, a way to mount it and a place", "PersistentVolume", "", "", `{"spec":{}}`,
			`[spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: Unsupported value: null: supported values: "storage", spec: Required value: must specify a volume type]`},
		{"of which each is one that there is", "PersistentVolume", "", "",
			`{"spec":{` + onHost + `,"accessModes":["Odd"],"capacity":{"storage":"0"},"persistentVolumeReclaimPolicy":"Odd","volumeMode":"Odd","storageClassName":"A"}}`,
			`[spec.accessModes: Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod", ` +
				`spec.capacity[storage]: Invalid value: "0": must be greater than zero, ` +
				`spec.persistentVolumeReclaimPolicy: Unsupported value: "Odd": supported values: "Delete", "Recycle", "Retain", ` +
				`spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end ` +
				`with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), ` +
				`spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"]`},
		{"one place", "PersistentVolume", "", "", volumeOf(onHost + `,"nfs":{"server":"s","path":"/d"}`), "spec.nfs: Forbidden: may not specify more than 1 volume type"},
		{"a way that is for one pod is the only one", "PersistentVolume", "", "", strings.Replace(volumeOf(onHost), `"ReadWriteOnce"`, `"ReadWriteOnce","ReadWriteOncePod"`, 1),
			"spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
		{"paths do not lead up", "PersistentVolume", "", "", volumeOf(`"hostPath":{"path":"/d/../e","type":"Odd"}`),
			`[spec.hostPath.path: Invalid value: "/d/../e": must not contain '..', spec.hostPath.type: Unsupported value: "Odd": supported values: "", "BlockDevice", ` +
				`"CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]`},
		{"everything is not for scrubbing", "PersistentVolume", "", "", volumeOf(`"hostPath":{"path":"//"},"persistentVolumeReclaimPolicy":"Recycle"`),
			"spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"},
		{"what is at a node says at which", "PersistentVolume", "", "", volumeOf(local), "spec.nodeAffinity: Required value: Local volume requires node affinity"},
		{"and not nothing", "PersistentVolume", "", "", volumeOf(local + `,"nodeAffinity":{}`), "spec.nodeAffinity.required: Required value: must specify required node constraints"},
		{"nor none", "PersistentVolume", "", "", volumeOf(local + `,"nodeAffinity":{"required":{"nodeSelectorTerms":[]}}`),
			"spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term"},
		{"where files are served", "PersistentVolume", "", "", volumeOf(`"nfs":{"path":"d"}`),
			`[spec.nfs.server: Required value, spec.nfs.path: Invalid value: "d": must be an absolute path]`},
		{"who drives it", "PersistentVolume", "", "", volumeOf(`"csi":{"driver":"a_b"}`),
			`[spec.csi.driver: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end ` +
				`with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), ` +
				`spec.csi.volumeHandle: Required value]`},
		{"a driver has a short name", "PersistentVolume", "", "", volumeOf(`"csi":{"driver":"` + strings.Repeat("a.", 40) + `a","volumeHandle":"h"}`), "spec.csi.driver: Too long: may not be more than 63 bytes"},
		{"and has to be somebody", "PersistentVolume", "", "", volumeOf(`"csi":{"volumeHandle":"h"}`), "spec.csi.driver: Required value"},
		{"a class of attributes is the driver's", "PersistentVolume", "", "", volumeOf(onHost + `,"volumeAttributesClassName":""`),
			"[spec.volumeAttributesClassName: Required value: an empty string is disallowed, spec.csi: Required value: has to be specified when using volumeAttributesClassName]"},
		{"not all can be mounted with options", "PersistentVolume", "", "", strings.Replace(volumeOf(onHost), `"name":"a"`, `"name":"a","annotations":{"`+mountOptionsAnnotation+`":"ro"}`, 1),
			"metadata.annotations." + mountOptionsAnnotation + ": Forbidden: may not specify mount options for this volume type"},
		{"some can", "PersistentVolume", "", "", strings.Replace(volumeOf(`"nfs":{"server":"s","path":"/d"}`), `"name":"a"`, `"name":"a","annotations":{"`+mountOptionsAnnotation+`":"ro"}`, 1), ""},

		{"a volume may change its class", "PersistentVolume", "", volumeOf(onHost), volumeOf(onHost + `,"storageClassName":"x"`), ""},
		{"a volume does not become another mode", "PersistentVolume", "", volumeOf(onHost), volumeOf(onHost + `,"volumeMode":"Block"`), `volumeMode: Invalid value: "Block": field is immutable`},
		{"nor moves", "PersistentVolume", "", volumeOf(near("a")), volumeOf(near("b")), `nodeAffinity: Invalid value: {"required":{"nodeSelectorTerms":[{"matchExpressions":[` +
			`{"key":"zone","operator":"In","values":["b"]}]}]}}: field is immutable, except for updating from beta label to GA`},
		{"a driver may be given a secret later", "PersistentVolume", "", volumeOf(`"csi":{"driver":"x","volumeHandle":"h"}`),
			volumeOf(`"csi":{"driver":"x","volumeHandle":"h","controllerExpandSecretRef":{"name":"s","namespace":"n"}}`), ""},
		{"a class of attributes is not taken away", "PersistentVolume", "", volumeOf(`"csi":{"driver":"x","volumeHandle":"h"},"volumeAttributesClassName":"fast"`),
			volumeOf(`"csi":{"driver":"x","volumeHandle":"h"}`), "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"},
	})
	errs := door(t, "PersistentVolume", "").ValidateUpdate(t.Context(), read(t, "PersistentVolume", volumeOf(`"hostPath":{"path":"/e"}`)), read(t, "PersistentVolume", volumeOf(onHost)))
	if got := fmt.Sprint(errs); !strings.HasPrefix(got, "[spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n") || len(errs) != 1 {
		t.Errorf("a volume elsewhere: %s", got)
	}
}

func TestWhatIsWrongWithClaims(t *testing.T) { // rules B16, B67
	refusals(t, []write{
		{"a claim as it should be", "PersistentVolumeClaim", "", "", claimOf("1Gi", fromClaim), ""},
		{"a claim says how much, and for what", "PersistentVolumeClaim", "", "", `{"spec":{"volumeMode":"Odd"}}`,
			`[spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: Required value, ` +
				`spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"]`},
		{"something", "PersistentVolumeClaim", "", "", claimOf("0", ""), `spec.resources[storage]: Invalid value: "0": must be greater than zero`},
		{"what is in it has a kind and a name", "PersistentVolumeClaim", "", "", claimOf("1Gi", `"dataSourceRef":{"kind":"","name":""},`),
			`[spec.dataSourceRef.name: Required value, spec.dataSourceRef.kind: Required value, ` +
				`spec.dataSourceRef: Invalid value: "": must be 'PersistentVolumeClaim' when referencing the default apiGroup]`},
		{"it is one thing", "PersistentVolumeClaim", "", "", claimOf("1Gi", fromClaim+`"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"c"},`),
			`spec: Invalid value: {}: must match dataSourceRef`},
		{"labels can be asked for", "PersistentVolumeClaim", "", "", claimOf("1Gi", `"selector":{"matchExpressions":[{"key":"k","operator":"Odd"}]},`),
			`spec.selector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator`},

		{"a claim gets its volume and its class once", "PersistentVolumeClaim", "", claimOf("1Gi", ""), claimOf("1Gi", `"volumeName":"v","storageClassName":"x",`), ""},
		{"one that never asked for a class of attributes need not", "PersistentVolumeClaim", "", claimBound("1Gi", ""), claimBound("1Gi", ""), ""},
		{"bound, it may grow", "PersistentVolumeClaim", "", claimBound("1Gi", `"volumeAttributesClassName":"fast",`), claimBound("2Gi", `"volumeAttributesClassName":"faster",`), ""},
		{"and come back from where it could not grow to", "PersistentVolumeClaim", "", claimBound("3Gi", `"volumeAttributesClassName":"fast",`), claimBound("2Gi", `"volumeAttributesClassName":"fast",`), ""},
		{"but not to less than it has", "PersistentVolumeClaim", "", claimBound("3Gi", `"volumeAttributesClassName":"fast",`), claimBound("1Gi", `"volumeAttributesClassName":"fast",`),
			"spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"},
		{"a class of attributes that it has is not taken away", "PersistentVolumeClaim", "", claimBound("1Gi", `"volumeAttributesClassName":"fast",`), claimBound("1Gi", ""),
			"spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"},
		{"nor emptied", "PersistentVolumeClaim", "", claimBound("1Gi", `"volumeAttributesClassName":"fast",`), claimBound("1Gi", `"volumeAttributesClassName":"",`),
			"spec.volumeAttributesClassName: Forbidden: update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"},
	})
	for _, tt := range []struct{ name, old, sent string }{
		{"one that waits does not grow", claimOf("1Gi", ""), claimOf("2Gi", "")},
		{"a volume is not changed", claimBound("1Gi", ""), strings.Replace(claimBound("1Gi", ""), `"v"`, `"w"`, 1)},
		{"nor a class", claimOf("1Gi", `"storageClassName":"x",`), claimOf("1Gi", `"storageClassName":"y",`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := door(t, "PersistentVolumeClaim", "").ValidateUpdate(t.Context(), read(t, "PersistentVolumeClaim", tt.sent), read(t, "PersistentVolumeClaim", tt.old))
			const want = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
			if len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), want) {
				t.Errorf("got %v", errs)
			}
		})
	}
}

func TestOldWaysOfSayingThingsWarn(t *testing.T) {
	for _, tt := range []struct{ name, kind, document, want string }{
		{"a claim that says its class as people did once", "PersistentVolumeClaim", `{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"x"}}}`,
			`[metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead]`},
		{"a volume that is scrubbed", "PersistentVolume", `{"metadata":{"annotations":{"volume.beta.kubernetes.io/mount-options":"ro"}},"spec":{"persistentVolumeReclaimPolicy":"Recycle"}}`,
			`[metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead ` +
				`spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.]`},
		{"a volume as people say it now", "PersistentVolume", `{}`, "[]"},
		{"a claim as people say it now", "PersistentVolumeClaim", `{}`, "[]"},
		{"an ingress that says its class as people did once", "Ingress", `{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}}}`,
			`[annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead]`},
		{"an ingress that says it both ways", "Ingress", `{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"ingressClassName":"x"}}`, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(door(t, tt.kind, "").Warnings(t.Context(), read(t, tt.kind, tt.document), nil)); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
	i := read(t, "Ingress", `{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}}}`)
	if got := door(t, "Ingress", "").Warnings(t.Context(), i, i); len(got) != 0 {
		t.Errorf("an ingress that is there already: %v", got)
	}
}

func TestANewVolumeSaysWhenItCameToBe(t *testing.T) {
	s := serve(t, "PersistentVolume")
	s.namespace = ""
	v, err := s.create(volumeOf(onHost), registry.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	got := obj.(*corev1.PersistentVolume)
	if at := got.Status.LastPhaseTransitionTime; at == nil || at.IsZero() || !at.Equal(&got.CreationTimestamp) {
		t.Errorf("created at %v, and pending since %v", got.CreationTimestamp, at)
	}
	same := &corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{LastPhaseTransitionTime: &metav1.Time{Time: time.Unix(1, 0)}}}
	now := same.DeepCopy()
	now.Status.LastPhaseTransitionTime = nil
	keepPhaseTime(now, same)
	if now.Status.LastPhaseTransitionTime == same.Status.LastPhaseTransitionTime {
		t.Error("the time is shared with the object that was")
	}
}
