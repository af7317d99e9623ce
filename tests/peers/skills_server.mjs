// A server of the skills extension over stdio, in both eras: the skills below the directory that is its argument.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { discoverSkills, registerSkillResources } from "@olaservo/ext-skills/server";

const directory = process.argv[2];
const skills = discoverSkills(directory);

serveStdio(() => {
  const server = new McpServer({ name: "skills", version: "1.0.0" }, { capabilities: { resources: {} } });
  registerSkillResources(server, skills, directory, { template: true, directoryRead: true });
  return server;
});
