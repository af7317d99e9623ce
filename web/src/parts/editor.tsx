// The editor of the configuration: JSON with comments. It lives in a shadow root, where the editor's styles need no inline style element,
// which the window's policy forbids.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState, Transaction } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';

export interface Fault {
  line: number;
  column: number;
  message: string;
  severity?: string;
}

interface Props {
  text: string;
  change: (text: string) => void;
  faults: Fault[];
  /** Called with a function that goes to a place of the text. */
  ready: (go: (offset: number) => void) => void;
}

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--number)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
]);

const look = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--field)', color: 'var(--text)', fontSize: '13px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--muted)', borderRight: '1px solid var(--border)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selection)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--panel)', color: 'var(--text)', border: '1px solid var(--border)' },
  '.cm-textfield, .cm-button': { backgroundColor: 'var(--field)', backgroundImage: 'none', color: 'var(--text)', border: '1px solid var(--strong-border)' },
});

/** JSON with comments. The package for JSON knows none. */
const language = StreamLanguage.define<{ isComment: boolean }>({
  startState: () => ({ isComment: false }),
  token(stream, state) {
    if (state.isComment || stream.match('/*')) {
      state.isComment = !stream.skipTo('*/');
      if (state.isComment) stream.skipToEnd();
      else stream.match('*/');
      return 'comment';
    }
    if (stream.match('//')) {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return stream.match(/^\s*:/, false) ? 'propertyName' : 'string';
    if (stream.match(/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return 'number';
    if (stream.match(/^(?:true|false)\b/)) return 'bool';
    if (stream.match(/^null\b/)) return 'null';
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: '//', block: { open: '/*', close: '*/' } } },
});

export function Editor({ text, change, faults, ready }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const report = useRef(change);
  report.current = change;
  useEffect(() => {
    const box = host.current;
    if (!box) return undefined;
    const root = box.shadowRoot ?? box.attachShadow({ mode: 'open' });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(), history(), drawSelection(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), search({ top: true }), lintGutter(),
          language, syntaxHighlighting(colours), look, EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': 'Text of the configuration', spellcheck: 'false', tabindex: '0' }),
          keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && update.transactions.some((one) => one.annotation(Transaction.remote) !== true)) report.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    ready((offset) => {
      made.dispatch({ selection: { anchor: Math.min(offset, made.state.doc.length) }, effects: EditorView.scrollIntoView(Math.min(offset, made.state.doc.length), { y: 'center' }) });
      made.focus();
    });
    return () => made.destroy();
  }, []);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const now = editor.state.doc.toString();
    if (now === text) return;
    // Only what differs is replaced, so that the place in the text and the steps back are kept.
    let start = 0;
    while (start < now.length && start < text.length && now[start] === text[start]) start += 1;
    let end = 0;
    while (end < now.length - start && end < text.length - start && now[now.length - 1 - end] === text[text.length - 1 - end]) end += 1;
    editor.dispatch({ changes: { from: start, to: now.length - end, insert: text.slice(start, text.length - end) }, annotations: Transaction.remote.of(true) });
  }, [text]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const { doc } = editor.state;
    const marks = faults.map(({ line, column, message, severity }): Diagnostic => {
      const row = doc.line(Math.max(1, Math.min(doc.lines, line)));
      const from = Math.min(row.to, row.from + Math.max(0, column - 1));
      return { from, to: Math.max(from, row.to), message, severity: severity === 'warning' ? 'warning' : 'error' };
    });
    editor.dispatch(setDiagnostics(editor.state, marks));
  }, [faults, text]);
  return <div class="editor" ref={host} />;
}
