class Mcpzip < Formula
  desc "One MCP server in front of all your MCP servers"
  homepage "https://github.com/@REPOSITORY@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/mcpzip-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:mcpzip-aarch64-apple-darwin.tar.gz@"
    end
    on_intel do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/mcpzip-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:mcpzip-x86_64-apple-darwin.tar.gz@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/mcpzip-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:mcpzip-aarch64-unknown-linux-musl.tar.gz@"
    end
    on_intel do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/mcpzip-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:mcpzip-x86_64-unknown-linux-musl.tar.gz@"
    end
  end

  def install
    bin.install "mcpzip"
    bash_completion.install "completions/mcpzip.bash" => "mcpzip"
    zsh_completion.install "completions/mcpzip.zsh" => "_mcpzip"
    fish_completion.install "completions/mcpzip.fish"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcpzip --version")
    assert_match "find_free_slots", shell_output("#{bin}/mcpzip demo")
  end
end
