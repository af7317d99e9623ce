// Draws public/card.png, the picture that is shown where a link is shared: `node scripts/card.mjs`. Needs Chromium.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { website } from './lib.mjs';
import { browser } from '../test/support.mjs';

const mark = readFileSync(join(website, 'src/assets/mark.svg'), 'utf8');
const chromium = await browser();
const page = await chromium.newPage({ viewport: { width: 1200, height: 630 } });
await page.setContent(`<style>body{margin:0;height:630px;box-sizing:border-box;padding:110px;background:#0d1117;color:#f0f6fc;font-family:'DejaVu Sans',sans-serif}
svg{width:130px;height:130px}h1{font-size:92px;margin:24px 0 20px}p{font-size:40px;line-height:1.4;margin:0;color:#9fb0c0}</style>${mark}<h1>mcpzip</h1><p>One MCP server in front of all your MCP servers</p>`);
await page.screenshot({ path: join(website, 'public/card.png') });
await chromium.close();
