package objectjson

// name returns s as a string, without making one if it is among the names that most objects
// hold. (A third of what reading an object allocates are names.)
func name(s []byte) string {
	switch string(s) {
	case "apiVersion":
		return "apiVersion"
	case "kind":
		return "kind"
	case "metadata":
		return "metadata"
	case "spec":
		return "spec"
	case "status":
		return "status"
	case "data":
		return "data"
	case "name":
		return "name"
	case "namespace":
		return "namespace"
	case "labels":
		return "labels"
	case "annotations":
		return "annotations"
	case "uid":
		return "uid"
	case "resourceVersion":
		return "resourceVersion"
	case "generation":
		return "generation"
	case "creationTimestamp":
		return "creationTimestamp"
	case "ownerReferences":
		return "ownerReferences"
	case "finalizers":
		return "finalizers"
	case "managedFields":
		return "managedFields"
	case "manager":
		return "manager"
	case "operation":
		return "operation"
	case "time":
		return "time"
	case "fieldsType":
		return "fieldsType"
	case "fieldsV1":
		return "fieldsV1"
	case ".":
		return "."
	case "f:metadata":
		return "f:metadata"
	case "f:labels":
		return "f:labels"
	case "f:annotations":
		return "f:annotations"
	case "f:spec":
		return "f:spec"
	case "f:status":
		return "f:status"
	case "f:name":
		return "f:name"
	case "f:type":
		return "f:type"
	case "f:conditions":
		return "f:conditions"
	}
	return more(s)
}

// more are names inside spec and status.
func more(s []byte) string {
	switch string(s) {
	case "type":
		return "type"
	case "value":
		return "value"
	case "key":
		return "key"
	case "conditions":
		return "conditions"
	case "reason":
		return "reason"
	case "message":
		return "message"
	case "lastTransitionTime":
		return "lastTransitionTime"
	case "observedGeneration":
		return "observedGeneration"
	case "phase":
		return "phase"
	case "replicas":
		return "replicas"
	case "selector":
		return "selector"
	case "matchLabels":
		return "matchLabels"
	case "template":
		return "template"
	case "containers":
		return "containers"
	case "image":
		return "image"
	case "ports":
		return "ports"
	case "port":
		return "port"
	case "containerPort":
		return "containerPort"
	case "protocol":
		return "protocol"
	case "env":
		return "env"
	case "resources":
		return "resources"
	case "limits":
		return "limits"
	case "requests":
		return "requests"
	case "cpu":
		return "cpu"
	case "memory":
		return "memory"
	}
	return string(s)
}
