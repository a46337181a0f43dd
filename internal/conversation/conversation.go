package conversation

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.yaml.in/yaml/v3"
)

// A Conversation is one recorded exchange. Run does not change it.
type Conversation struct {
	Topic         string   `yaml:"-"`
	Title         string   `yaml:"title"`
	Refs          []string `yaml:"refs"` // rules of the specification
	Tags          []string `yaml:"tags"` // its own and those of its topic
	ManagedFields bool     `yaml:"managedFields"`
	Steps         []*Step  `yaml:"steps"`
}

// ID names the conversation among all others: "topic/title".
func (c *Conversation) ID() string { return c.Topic + "/" + c.Title }

// A Step is one of a request, a watch, a race and a pause, and what is expected of it.
type Step struct {
	Note    string            `yaml:"note"`
	Request *Request          `yaml:"request"`
	Watch   *Watch            `yaml:"watch"`
	Race    *Race             `yaml:"race"`
	Pause   time.Duration     `yaml:"pause"`
	Retry   *Retry            `yaml:"retry"`
	Capture map[string]string `yaml:"capture"` // name to path in the raw answer
	Check   Check             `yaml:"check"`
	Expect  Expect            `yaml:"expect"`
}

// A Request is what the client sends. Everything in it may hold replacements.
type Request struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	As      string            `yaml:"as"`
	Auth    string            `yaml:"auth"`
	Body    body              `yaml:"body"`
}

// A Watch opens a stream, has other steps run, and then collects events.
type Watch struct {
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	As      string            `yaml:"as"`
	Events  int               `yaml:"events"` // 0: until the stream ends or the time is over
	Timeout time.Duration     `yaml:"timeout"`
	Linger  time.Duration     `yaml:"linger"`
	While   []*Step           `yaml:"while"`
}

// A Race sends one request several times at once.
type Race struct {
	Count   int      `yaml:"count"`
	Request *Request `yaml:"request"`
}

// A Retry repeats a request until its answer is right or the time is over.
type Retry struct {
	Seconds int               `yaml:"seconds"`
	Status  int               `yaml:"status"`
	Where   map[string]string `yaml:"where"` // path to the value's text
}

// A Check narrows down what is compared. Its zero value compares everything.
type Check struct {
	StatusOnly bool     `yaml:"statusOnly"`
	Only       []string `yaml:"only"`
	Ignore     []string `yaml:"ignore"`
	Shape      bool     `yaml:"shape"`
	Unordered  bool     `yaml:"unordered"`
	Headers    []string `yaml:"headers"`
}

// An Expect is the recorded answer.
type Expect struct {
	Status  int               `yaml:"status"`
	Headers map[string]string `yaml:"headers"`
	Body    value             `yaml:"body"`
	Values  map[string]value  `yaml:"values"`
	Events  []Event           `yaml:"events"`
	Closed  bool              `yaml:"closed"`
	Tally   map[string]int    `yaml:"tally"`
}

// An Event is one recorded event of a watch: an object, or values of it.
type Event struct {
	Type   string           `yaml:"type"`
	Object value            `yaml:"object"`
	Values map[string]value `yaml:"values"`
}

// Load reads every topic of fsys, which are the files *.yaml at its root, in the
// order of their names. A member that it does not know is an error, so that
// nothing recorded goes unheeded.
func Load(fsys fs.FS) ([]*Conversation, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("conversation: there are no *.yaml files to load")
	}
	var all []*Conversation
	seen := map[string]bool{}
	for _, name := range names {
		topic, err := loadTopic(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("conversation: %s: %w", name, err)
		}
		for _, c := range topic {
			if seen[c.ID()] {
				return nil, fmt.Errorf("conversation: %s: %q is there twice", name, c.ID())
			}
			seen[c.ID()] = true
		}
		all = append(all, topic...)
	}
	return all, nil
}

func loadTopic(fsys fs.FS, name string) ([]*Conversation, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	var file struct {
		Topic         string          `yaml:"topic"`
		About         string          `yaml:"about"`
		Tags          []string        `yaml:"tags"`
		Conversations []*Conversation `yaml:"conversations"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	for _, c := range file.Conversations {
		c.Topic = file.Topic
		c.Tags = append(c.Tags, file.Tags...)
		if err := checkSteps("", c.Steps); err != nil {
			return nil, fmt.Errorf("%q: %w", c.Title, err)
		}
	}
	return file.Conversations, nil
}

// checkSteps refuses steps that do nothing, or two things, and paths that do not parse.
func checkSteps(prefix string, steps []*Step) error {
	for i, s := range steps {
		number := fmt.Sprintf("%s%d", prefix, i+1)
		if err := s.check(); err != nil {
			return fmt.Errorf("step %s: %w", number, err)
		}
		if s.Watch != nil {
			if err := checkSteps(number+".", s.Watch.While); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Step) check() error {
	kinds := 0
	for _, is := range []bool{s.Request != nil, s.Watch != nil, s.Race != nil, s.Pause != 0} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("has %d of request, watch, race and pause, must have one", kinds)
	}
	if s.Retry != nil && s.Request == nil {
		return errors.New("only a request can be retried")
	}
	if s.Race != nil && (s.Race.Request == nil || s.Race.Count < 1) {
		return errors.New("a race needs a request and a count")
	}
	if err := s.checkRecorded(); err != nil {
		return err
	}
	paths := append(append([]string(nil), s.Check.Only...), s.Check.Ignore...)
	if s.Retry != nil {
		for p := range s.Retry.Where {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		if _, err := parsePath(p); err != nil {
			return err
		}
	}
	return nil
}

// checkRecorded refuses a step whose check asks for what was not recorded.
func (s *Step) checkRecorded() error {
	if s.Request == nil || s.Check.StatusOnly {
		return nil
	}
	if len(s.Check.Only) == 0 {
		if !s.Expect.Body.set {
			return errors.New("records no body, and the check does not leave it out")
		}
		return nil
	}
	for _, p := range s.Check.Only {
		if _, ok := s.Expect.Values[p]; !ok {
			return fmt.Errorf("records no value for %s", p)
		}
	}
	return nil
}
