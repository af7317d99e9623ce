// Searches as an agent would, and shows why each tool was found. Without a need it lists all tools.
import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { read, wordsOf } from '../api';
import { servers, toolsVersion } from '../live';
import { Bar } from '../parts/bar';
import { useRead } from '../parts/read';
import { Failed, Signature } from '../parts/text';
import { replace, route, to } from '../route';
import { count, counted } from '../words';
import { ToolList, type ToolLine } from './servers';

interface Hit {
  name: string;
  score: number;
  words: number | null;
  meaning: number | null;
  fused: number | null;
  fields: Record<string, number>;
  is_named: boolean;
  rank_by_words: number | null;
  rank_by_meaning: number | null;
  rank_before_model: number | null;
  server_factor: number;
}
interface Answer { hits: Hit[]; by_meaning: boolean; fits: boolean; needs: string[]; repairs: { written: string; meant: string }[] }

/** All tools, kept while the window is open, until some change. */
const all = signal<{ tools: ToolLine[]; version: number; texts: Map<string, string> } | undefined>(undefined);

function useTools(): { tools: ToolLine[] | undefined; texts: Map<string, string> | undefined; failure: string | undefined; again: () => void } {
  const [failure, setFailure] = useState<string>();
  const [turn, setTurn] = useState(0);
  const version = toolsVersion.value;
  useEffect(() => {
    if (all.value?.version === version) return;
    read<ToolLine[]>('tools').then((tools) => {
      all.value = { tools, version, texts: new Map(tools.map(({ name, text }) => [name, text])) };
      setFailure(undefined);
    }, (error: unknown) => setFailure(wordsOf(error)));
  }, [version, turn]);
  return { tools: all.value?.tools, texts: all.value?.texts, failure, again: () => setTurn((count) => count + 1) };
}

export function Search() {
  const { query: set } = route.value;
  const query = set.get('q') ?? '';
  const server = set.get('server') ?? '';
  const [words, setWords] = useState(query);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => setWords(query), [query]);
  const { value, failure, isBusy, again } = useRead<Answer>('search', query ? { query, limit: 10, ...(server ? { server } : {}) } : undefined);
  const { tools, texts, failure: fault, again: reread } = useTools();
  const ask = (need: string, only: string) => replace(to('search', [], { q: need, server: only }));
  return (
    <div class={query ? '' : 'page-list'}>
      <h1>Search</h1>
      <form class="filters need" role="search" onSubmit={(event) => { event.preventDefault(); ask(box.current?.value.trim() ?? '', server); }}>
        <label class="grow">What do you need done? <input ref={box} type="search" autocomplete="off" value={words} onInput={({ currentTarget }) => { setWords(currentTarget.value); if (!currentTarget.value) ask('', server); }} /></label>
        <label>Server
          <select value={server} onChange={({ currentTarget }) => ask(words.trim(), currentTarget.value)}>
            <option value="">all</option>
            {servers.value.filter(({ state }) => state !== 'disabled').map(({ name }) => <option key={name}>{name}</option>)}
          </select>
        </label>
        <button type="submit" class="primary">Search</button>
      </form>
      <Failed text={failure} again={again} />
      <Failed text={fault} again={reread} />
      {query ? <div role="status" class="hidden">{isBusy ? 'Searching' : value ? counted(value.hits.length, 'tool') : ''}</div> : null}
      {query ? (value ? <Hits answer={value} texts={texts} /> : isBusy && <p class="faint">Searching…</p>) : <Everything tools={tools} server={server} words={words} />}
    </div>
  );
}

function Everything({ tools, server, words }: { tools: ToolLine[] | undefined; server: string; words: string }) {
  const shown = useMemo(() => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return (tools ?? []).filter((tool) => (!server || tool.server === server) && wanted.every((word) => tool.text.toLowerCase().includes(word)));
  }, [tools, server, words]);
  return (
    <>
      <p class="faint" role="status">{tools && (words ? `${count(shown.length)} of ${counted(tools.length, 'tool')} have these words. Press Enter to search as an agent does.` : `All ${counted(shown.length, 'tool')}, in the order of their servers.`)}</p>
      <ToolList tools={shown} label="Tools" empty={tools ? 'No tool has these words. Press Enter to search by meaning.' : 'Reading…'} />
    </>
  );
}

const PARTS: [string, string][] = [['tool', 'name'], ['title', 'title'], ['description', 'description'], ['parameters', 'parameters'], ['server', 'server']];

function Hits({ answer, texts }: { answer: Answer; texts: Map<string, string> | undefined }) {
  const { hits, needs, repairs, by_meaning: isByMeaning, fits } = answer;
  const most = Math.max(...hits.map(({ score }) => score), 0.001);
  return (
    <>
      {repairs.length > 0 && <p>Read as: {repairs.map(({ written, meant }) => `${written} → ${meant}`).join(', ')}</p>}
      {needs.length > 1 && <p>Needs: {needs.join(' · ')}</p>}
      {!isByMeaning && <p class="warn">By words alone: the tools have no vectors yet.</p>}
      {!fits && hits.length > 0 && <p class="warn">No tool fits well, and the answer to an agent says so.</p>}
      {hits.length === 0 && <p>No tool fits.</p>}
      <ol class="hits">
        {hits.map((hit, at) => (
          <li key={hit.name}>
            <span class="place faint" aria-hidden="true">{at + 1}</span>
            <a href={to('tool', [hit.name])} class="hit"><Signature text={texts?.get(hit.name) ?? hit.name} /></a>
            <div class="scores">
              <Score name="score" value={hit.score} most={most} tone="accent" />
              <Score name="words" value={hit.words} most={1} note={rank(hit.rank_by_words)} tone="words" />
              <Score name="meaning" value={hit.meaning} most={1} note={rank(hit.rank_by_meaning)} tone="meaning" />
              <details>
                <summary>Why {at === 0 ? 'it is first' : `it is number ${at + 1}`}</summary>
                <dl class="fields">
                  {PARTS.map(([key, word]) => <div key={key}><dt>words in the {word}</dt><dd><Bar value={hit.fields[key] ?? 0} most={0.6} tone="words" /> <span class="number">{(hit.fields[key] ?? 0).toFixed(3)}</span></dd></div>)}
                  <div><dt>words and meaning</dt><dd><Bar value={hit.fused ?? 0} most={1} tone="meaning" /> <span class="number">{hit.fused?.toFixed(3) ?? '–'}</span></dd></div>
                  <div><dt>factor of its server</dt><dd><span class="number">× {hit.server_factor.toFixed(2)}</span></dd></div>
                  {hit.is_named && <div><dt>the need names it</dt><dd>yes</dd></div>}
                  {hit.rank_before_model !== null && <div><dt>rank before the model</dt><dd>{hit.rank_before_model}</dd></div>}
                </dl>
              </details>
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

const rank = (value: number | null) => (value === null ? '' : `#${value}`);

function Score({ name, value, most, note = '', tone }: { name: string; value: number | null; most: number; note?: string; tone: string }) {
  return <div class="score"><span>{name}</span><Bar value={value ?? 0} most={most} tone={tone} /><span class="number">{value === null ? '–' : value.toFixed(2)}</span><span class="faint">{note}</span></div>;
}
