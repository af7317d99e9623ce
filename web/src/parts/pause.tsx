// The pause of mcpzip: a button that begins it, and a banner on every page as long as it lasts.
import { controlAs } from '../api';
import { status } from '../live';
import { Act, type Doing } from './action';
import { moment } from '../words';

const PAUSE: Doing = {
  title: 'Pause mcpzip',
  word: 'Pause',
  command: 'mcpzip daemon pause',
  perform: () => controlAs('mcpzip daemon pause', 'daemon.pause', {}),
  body: <p>Until you resume, no new call reaches a server, in any session. Calls in progress end, and calls that wait for approval go on waiting. Lists and search go on.</p>,
};
const RESUME: Doing = {
  title: 'Resume mcpzip',
  word: 'Resume',
  command: 'mcpzip daemon resume',
  perform: () => controlAs('mcpzip daemon resume', 'daemon.resume', {}),
  body: <p>Calls reach their servers again.</p>,
};

export function PauseButton() {
  return status.value?.paused ? <Act doing={RESUME}>Resume</Act> : <Act doing={PAUSE}>Pause</Act>;
}

export function PauseBanner() {
  const paused = status.value?.paused;
  if (!paused) return null;
  const since = paused.since ? ` since ${moment(paused.since * 1000)}` : '';
  return (
    <div class="banner warn" role="status">
      <strong>mcpzip is paused{since}.</strong> {paused.fault ? `Whether you have paused it cannot be told (${paused.fault}), so no` : 'No'} new call reaches a server. <Act doing={RESUME} class="small">Resume</Act>
    </div>
  );
}
