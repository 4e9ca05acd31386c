package prompttune

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// InputError is what all errors about templates, word lists and targets have in common:
// what was given is at fault, and other input may do.
type InputError interface {
	error
	input()
}

// TemplateError reports a template that is none.
type TemplateError struct {
	Pattern string // "" where there is none
	Reason  string
}

func (e *TemplateError) Error() string {
	if e.Pattern == "" {
		return "prompttune: template: " + e.Reason
	}
	return fmt.Sprintf("prompttune: template %q: %s", e.Pattern, e.Reason)
}
func (*TemplateError) input() {}

// ExitCode returns 2: bad usage or input.
func (*TemplateError) ExitCode() int { return 2 }

// LengthError reports a prompt or a target text of more tokens than the model takes.
type LengthError struct {
	What          string // "the prompt" or "the target text"
	Tokens, Limit int    // both with the two tokens around the text
	Blanks        int    // of Tokens; 0 for a target text
}

func (e *LengthError) Error() string {
	text := fmt.Sprintf("prompttune: %s has %d tokens with the two around it, the model takes %d", e.What, e.Tokens, e.Limit)
	if rest := e.Limit - (e.Tokens - e.Blanks); e.Blanks > 0 && rest > 0 {
		text += fmt.Sprintf(": at most %d blanks", rest)
	}
	return text
}
func (*LengthError) input() {}

// ExitCode returns 2: bad usage or input.
func (*LengthError) ExitCode() int { return 2 }

// WordError reports a word of a list that cannot be used.
type WordError struct {
	Word string
	// Pieces are its tokens where there are several.
	Pieces []string
	Reason string // where it is not that
}

func (e *WordError) Error() string {
	if len(e.Pieces) > 0 {
		quoted := make([]string, len(e.Pieces))
		for i, p := range e.Pieces {
			quoted[i] = strconv.Quote(p)
		}
		return fmt.Sprintf("prompttune: the allowed word %q is %d tokens (%s), and a blank takes one", e.Word, len(e.Pieces), strings.Join(quoted, ", "))
	}
	return fmt.Sprintf("prompttune: the word %q: %s", e.Word, e.Reason)
}
func (*WordError) input() {}

// ExitCode returns 2: bad usage or input.
func (*WordError) ExitCode() int { return 2 }

// ProposalsError reports lists that leave too few tokens to propose.
type ProposalsError struct {
	Left    int // 0 or 1
	Blocked int // taken away by the block list
}

func (e *ProposalsError) Error() string {
	left := "no token"
	if e.Left == 1 {
		left = "one token"
	}
	return fmt.Sprintf("prompttune: the word lists leave %s to propose (%d blocked); at least two are needed", left, e.Blocked)
}
func (*ProposalsError) input() {}

// ExitCode returns 2: bad usage or input.
func (*ProposalsError) ExitCode() int { return 2 }

// BlockedError reports fixed words that are blocked themselves.
type BlockedError struct{ Template, Word string }

func (e *BlockedError) Error() string {
	return fmt.Sprintf("prompttune: template %q has the blocked word %q: no prompt could be a result", e.Template, e.Word)
}
func (*BlockedError) input() {}

// ExitCode returns 2: bad usage or input.
func (*BlockedError) ExitCode() int { return 2 }

// ListError reports a word list that cannot be read.
type ListError struct {
	List   string
	Reason string
	Err    error // or nil
}

func (e *ListError) Error() string {
	return fmt.Sprintf("prompttune: word list %s: %s", e.List, because(e.Reason, e.Err))
}

// ExitCode returns 2: bad usage or input.
func (*ListError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *ListError) Unwrap() error { return e.Err }
func (*ListError) input()          {}

// TargetError reports targets that give nothing to search for.
type TargetError struct {
	Target string // "" where all together are at fault
	Reason string
}

func (e *TargetError) Error() string {
	if e.Target == "" {
		return "prompttune: targets: " + e.Reason
	}
	return fmt.Sprintf("prompttune: target %s: %s", e.Target, e.Reason)
}
func (*TargetError) input() {}

// ExitCode returns 2: bad usage or input.
func (*TargetError) ExitCode() int { return 2 }

// VocabularyError reports a tokenizer and a text tower that do not belong together.
type VocabularyError struct {
	Model        string // where both come from
	Tokens, Rows int    // of the tokenizer, and of the tower's table
}

func (e *VocabularyError) Error() string {
	return fmt.Sprintf("prompttune: model %s: its tokenizer has %d tokens, its text tower %d", e.Model, e.Tokens, e.Rows)
}

// ExitCode returns 3: runtime or model unavailable.
func (*VocabularyError) ExitCode() int { return 3 }

// VocabulariesError reports models whose tokens are not the same.
type VocabulariesError struct {
	First, Second string // models
	Sizes         [2]int
	ID            int32 // the first that differs, or -1 where the sizes or the special tokens do
	Pieces        [2]string
}

func (e *VocabulariesError) Error() string {
	how := fmt.Sprintf("%d and %d tokens", e.Sizes[0], e.Sizes[1])
	switch {
	case e.ID >= 0:
		how = fmt.Sprintf("token %d is %q and %q", e.ID, e.Pieces[0], e.Pieces[1])
	case e.Sizes[0] == e.Sizes[1]:
		how = "their special tokens differ"
	}
	return fmt.Sprintf("prompttune: models %s and %s have different vocabularies (%s): one prompt cannot be for both", e.First, e.Second, how)
}

// ExitCode returns 2: bad usage or input.
func (*VocabulariesError) ExitCode() int { return 2 }

// WordsError reports the word list of a model that cannot be used. It comes in a
// *LoadError, which names the model.
type WordsError struct {
	Reason string
	Err    error // or nil
}

func (e *WordsError) Error() string {
	return wordsFile + ": " + because(e.Reason, e.Err) + "; mend it or take it away: without it every token that is a word is proposed"
}

// Unwrap returns the cause.
func (e *WordsError) Unwrap() error { return e.Err }

// LoadError reports a model that cannot be used.
type LoadError struct {
	Model string
	Err   error
}

func (e *LoadError) Error() string { return fmt.Sprintf("prompttune: model %s: %v", e.Model, e.Err) }

// ExitCode returns 3: runtime or model unavailable.
func (*LoadError) ExitCode() int { return 3 }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// because is what is wrong with a file: err, without the path that was named already, or
// reason where there is none.
func because(reason string, err error) string {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return path.Err.Error()
	case err != nil:
		return err.Error()
	}
	return reason
}
