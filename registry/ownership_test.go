package registry

import "testing"

func TestEntriesThatDifferInTimeAlone(t *testing.T) {
	entry := func(more ...any) map[string]any {
		m := map[string]any{"manager": "a", "operation": "Update", "fieldsV1": map[string]any{"f:x": map[string]any{}}}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		name string
		a, b map[string]any
		want bool
	}{
		{"the same", entry("time", "1"), entry("time", "1"), true},
		{"another time", entry("time", "1"), entry("time", "2"), true},
		{"a time, and none (as a scale leaves it)", entry("time", "1"), entry(), true},
		{"none, and a time", entry(), entry("time", "1"), true},
		{"another manager", entry("time", "1"), entry("time", "1", "manager", "b"), false},
		{"a subresource, and no time", entry("time", "1"), entry("subresource", "status"), false},
		{"a subresource more", entry("time", "1"), entry("time", "1", "subresource", "status"), false},
		{"other fields", entry("time", "1"), entry("time", "1", "fieldsV1", map[string]any{}), false},
	} {
		if got := equalButTime(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
