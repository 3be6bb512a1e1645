# frozen_string_literal: true

require_relative "../test_helper"
require_relative "scratch_repository"
require "pitwall/workspace/commit_hook"
require "pitwall/workspace/commits"

# Trailers in messages and notes, and the hook, in real repositories.
class CommitsTest < Minitest::Test
  include ScratchRepository

  PAIRS = [["Proof-Effect", "x: wall 1 → 2=3"], ["Proof-Effect", "y: #1"], ["Proof-Command", "a && b"]].freeze
  LINES = PAIRS.map { |pair| pair.join(": ") }.freeze

  def setup
    super
    git("config", "user.name", "a")
    git("config", "user.email", "a@example.invalid")
  end

  def commits = Pitwall::Workspace::Commits.new(@repo, prefix: "Proof-")

  def say(message) = git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-m", message)

  def text = git("log", "-1", "--format=%B")

  def test_trailers_are_added_replaced_and_read
    # Settings of a user that would change what git does with trailers and comments.
    { "trailer.separators" => "=", "trailer.ifexists" => "doNothing", "trailer.where" => "start",
      "commit.cleanup" => "strip" }.each { |name, value| git("config", name, value) }
    write("x" => "1")
    say("Title: of it\n\n# kept\nProof-Effect: quoted, no trailer\n---\nbody\n\nReviewed-by: b <b@example.invalid>\n")
    body = text
    git("add", "x")
    author = git("log", "-1", "--format=%an %at")
    amended = commits.amend(commits.find("HEAD"), PAIRS)
    assert_equal "#{body}\n#{LINES.join("\n")}", text
    assert_equal LINES, commits.trailers(amended)
    assert_equal ["", "A  x", author],
                 [git("show", "--format=", "--name-only", "HEAD"), git("status", "--short"),
                  git("log", "-1", "--format=%an %at")]
    again = commits.amend(amended, PAIRS.last(1))
    assert_equal "#{body}\n#{LINES.last}", text
    assert_equal again.id, git("rev-parse", "HEAD")
  end

  def test_a_note_leaves_the_commit_alone
    first = commit("a" => "1")
    commit("a" => "2")
    before = git("rev-parse", "HEAD")
    git("notes", "--ref=pitwall", "add", "-m", "Somebody's own words", first)
    commits.annotate(commits.find(first), PAIRS)
    2.times { commits.annotate(commits.find("HEAD"), PAIRS) }
    assert_equal [LINES, LINES], [first, "HEAD"].map { |name| commits.trailers(commits.find(name)) }
    assert_match(/\ASomebody's own words\n\nProof-Effect: x: .*\n\S+: y: #1\n.*: a && b\z/,
                 git("notes", "--ref=pitwall", "show", first))
    assert_equal before, git("rev-parse", "HEAD")
  end

  def test_what_a_commit_is
    assert_match(/the repository has no commits\z/, refused { commits.find("HEAD") })
    first = commit("a" => "1")
    head = commit("a" => "2")
    found = commits.find("HEAD")
    assert_equal [head, git("rev-parse", "HEAD^{tree}"), "change", [first], false], found.to_a
    assert_equal [], commits.trailers(found)
    assert_match(/\Anope: no such commit in/, refused { commits.find("nope") })
    assert_match(/\A--all: no such commit in/, refused { commits.find("--all") })
    git("clone", "--quiet", "--depth=1", "file://#{@repo}", File.join(@root, "shallow"), dir: @root)
    shallow = Pitwall::Workspace::Commits.new(File.join(@root, "shallow"), prefix: "Proof-")
    assert_match(/; this clone is shallow: `git fetch --unshallow`/, refused { shallow.find("HEAD~1") })
  end

  # A signature as git stores it: no key is needed to have one.
  def test_a_signature_is_seen
    commit("a" => "1")
    whole = git("cat-file", "commit", "HEAD").sub("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n\n")
    write("signed" => "#{whole}\n")
    signed = git("hash-object", "-t", "commit", "-w", "signed")
    assert_predicate commits.find(signed), :signed
  end

  # A listing leaves out one file. Two trees that differ in that file alone have the same listing. The working tree may
  # be one of them.
  def test_listings
    commit("a" => "1", "b/x.rb" => "1")
    one = listing("HEAD^{tree}")
    commit("b/x.rb" => "2")
    assert_equal one, listing("HEAD^{tree}")
    refute_equal one, listing("HEAD^{tree}", except: "a")
    commit("a" => "2", "b/x.rb" => nil)
    refute_equal one, listing("HEAD^{tree}")
    write("a" => "1", "b/x.rb" => "3")
    content = commits.repository.dirty(scratch: -> { File.join(@root, "scratch").tap { |path| Dir.mkdir(path) } })
    assert_equal one, commits.repository.listing(content.tree, except: "b/x.rb", objects: content.extra_objects)
  end

  # --- the hook

  def test_a_hook_is_installed_and_removed
    assert_equal %i[installed unchanged], [hook.install, hook.install]
    assert_equal "100755", format("%o", File.stat(hook.path).mode)
    assert_includes File.read(hook.path), "exec pitwall prove --hook \"$@\""
    assert_equal %i[removed unchanged], [hook.remove, hook.remove]
    refute_path_exists hook.path
  end

  def test_a_hook_that_is_there_is_chained_and_restored
    other = "#!/bin/sh\nprintf 'from the other hook\\n' >> \"$1\"\n[ \"$2\" != template ]\n"
    write(".git/hooks/prepare-commit-msg" => other)
    File.chmod(0o751, hook.path)
    assert_equal %i[chained unchanged], [hook.install, hook.install]
    # `pitwall` of this test: what it was called with is the message's last line.
    write("bin/pitwall" => "#!/bin/sh\nprintf '%s|%s\\n' \"$1 $2\" \"$4\" >> \"$3\"\n")
    File.chmod(0o755, File.join(@repo, "bin/pitwall"))
    with_path("#{@repo}/bin:#{ENV["PATH"]}") { say("one") }
    assert_equal "one\nfrom the other hook\nprove --hook|message", text
    # Without a pitwall in PATH the other hook runs all the same, and decides.
    say("two")
    assert_equal "two\nfrom the other hook", text
    write("template" => "words\n")
    _, status = Open3.capture2e(IDENTITY.merge("GIT_EDITOR" => "true"), "git", "commit", "--quiet", "--allow-empty",
                                "--template", "template", chdir: @repo)
    refute_predicate status, :success?
    assert_equal :restored, hook.remove
    assert_equal [other, "100751"], [File.read(hook.path), format("%o", File.stat(hook.path).mode)]
    assert_equal [hook.path], Dir["#{hook.path}*"].grep_v(/\.sample\z/)
  end

  def test_what_is_not_ours_stays
    write(".git/hooks/prepare-commit-msg" => "mine", ".git/hooks/prepare-commit-msg.before-pitwall" => "older")
    assert_match(/before-pitwall: is there already/, refused { hook.install })
    assert_match(/was changed since Pitwall installed it/, refused { hook.remove })
    assert_equal %w[mine older], Dir["#{hook.path}*"].grep_v(/\.sample\z/).sort.map { |path| File.read(path) }
    git("config", "core.hooksPath", ".husky/_")
    call = /\Acore\.hooksPath is \.husky\/_, .*: call pitwall prove --hook "\$@" in the prepare-commit-msg there\z/
    assert_match(call, refused { hook })
  end

  private

  def hook = Pitwall::Workspace::CommitHook.new(commits.repository, words: "prove --hook")

  def listing(tree, except: "b/x.rb") = commits.repository.listing(tree, except: except)

  def refused(&block)
    error = assert_raises(Pitwall::UsageError, &block)
    assert_equal 1, error.message.lines.size
    error.message
  end

  def with_path(path)
    before, ENV["PATH"] = ENV.fetch("PATH"), path
    yield
  ensure
    ENV["PATH"] = before
  end
end
