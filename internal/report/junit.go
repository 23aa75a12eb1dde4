package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/imgforge/imgforge/internal/record"
)

// The elements of JUnit's XML that CI systems read.
type (
	junitRun struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit prints the rows as JUnit's XML: a suite a cell, a case a check. A cell that
// ended otherwise is one case, an error.
func JUnit(w io.Writer, rows []Row) error {
	run := junitRun{}
	for _, r := range rows {
		run.Suites = append(run.Suites, junitOf(r))
	}
	data, err := xml.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	return err
}

func junitOf(r Row) junitSuite {
	s := junitSuite{Name: r.Cell, Time: "0.000"}
	if r.Smoked != nil {
		s.Time = fmt.Sprintf("%.3f", r.Smoked.Seconds)
		for _, c := range r.Smoked.Checks {
			s.Cases = append(s.Cases, junitCaseOf(r.Cell, c))
		}
	}
	if r.Failed != nil && r.Failed.Class != record.ClassSmoke {
		s.Cases = append(s.Cases, junitCase{Name: string(r.Failed.Class), Class: r.Cell, Time: "0.000", Error: &junitMessage{Message: r.Failed.Reason}})
	}
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	return s
}

func junitCaseOf(cell string, c record.Check) junitCase {
	out := junitCase{Name: c.Name, Class: cell + "." + c.Kind, Time: fmt.Sprintf("%.3f", c.Seconds)}
	var text strings.Builder
	problems(&text, c)
	switch c.Status {
	case record.CheckFailed:
		out.Failure = &junitMessage{c.Summary, text.String()}
	case record.CheckSkipped:
		out.Skipped = &junitMessage{Message: c.Summary}
	case record.CheckWarned:
		out.Out = "warning: " + c.Summary + "\n" + text.String()
	}
	return out
}
