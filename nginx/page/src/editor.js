// The editor. It lies in a shadow root, where CodeMirror adopts style sheets instead of writing them into the page, which its policy forbids.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { highlightSelectionMatches, searchKeymap, searchPanelOpen } from "@codemirror/search";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const LANGUAGES = {
  python: () => [python(), indentUnit.of("    ")],
  typescript: () => [javascript({ typescript: true }), indentUnit.of("  ")],
  bash: () => [StreamLanguage.define(shell), indentUnit.of("  ")],
};

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.standard(tags.name)], color: "var(--code-name)" },
  { tag: [tags.className, tags.typeName, tags.definition(tags.className)], color: "var(--code-type)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "transparent", fontSize: "var(--code-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { padding: "14px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 16px 0 6px" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--faint)", border: "none", paddingLeft: "8px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-activeLineGutter": { color: "var(--muted)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-selectionMatch, .cm-matchingBracket": { backgroundColor: "var(--match)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-panels input, .cm-panels button": { font: "inherit", color: "var(--ink)", background: "var(--paper)", border: "1px solid var(--line)", borderRadius: "6px" },
});

/** Text in place of a selection: the browser's own way keeps the colours of what goes in style attributes, which the policy forbids. */
function replaceSelected(event, view) {
  const { state } = view;
  const { from, to } = state.selection.main;
  if (event.inputType !== "insertText" || event.data === null || event.isComposing || from === to) return false;
  const replace = () => state.update(state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  if (!state.facet(EditorView.inputHandler).some((handler) => handler(view, from, to, event.data, replace))) view.dispatch(replace());
  event.preventDefault();
  return true;
}

/** onRun: Ctrl/Cmd-Enter; onChange: the text has changed. */
export class Editor {
  constructor(place, { onRun, onChange }) {
    this.language = new Compartment();
    this.onChange = onChange;
    const root = place.attachShadow({ mode: "open" });
    this.extensions = [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => { onRun(); return true; } },
        { key: "Escape", run: (view) => !searchPanelOpen(view.state) && (view.contentDOM.blur(), place.parentElement.querySelector("summary").focus(), true) }])),
      EditorView.domEventHandlers({ beforeinput: replaceSelected }),
      lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(),
      highlightSelectionMatches(), syntaxHighlighting(colours), look, placeholder("Write a program, or choose an example"),
      EditorView.contentAttributes.of({ "aria-label": "Program. Escape leaves the editor.", autocapitalize: "off", tabindex: "0" }),
      EditorView.updateListener.of((update) => update.docChanged && this.onChange()),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, indentWithTab]),
    ];
    this.view = new EditorView({ parent: root, root });
    this.open("", "python");
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Another program: what was typed before cannot be undone into it. */
  open(text, language) {
    this.view.setState(EditorState.create({ doc: text, extensions: [this.extensions, this.language.of(LANGUAGES[language]?.() ?? [])] }));
    this.view.scrollDOM.scrollTo(0, 0);
  }

  focus() {
    this.view.focus();
  }
}
