# frozen_string_literal: true

require_relative "../test_helper"
require_relative "scratch_repository"
require "pitwall/workspace/commit_range"

# The commits of a range, and which changed files can change what is measured.
class CommitRangeTest < Minitest::Test
  include ScratchRepository

  Reach = Pitwall::Workspace::Reach

  def range(text, dir: @repo) = Pitwall::Workspace::CommitRange.new(Pitwall::Workspace::Repository.at(dir), text)

  def refusal(kind, text, dir: @repo)
    error = assert_raises(kind) { range(text, dir: dir) }
    assert_equal 1, error.message.lines.size
    error.message
  end

  def test_a_history_with_a_merge
    assert_match(/the repository has no commits/, refusal(Pitwall::UsageError, "main..HEAD"))
    first = commit("a.rb" => "1")
    git("checkout", "--quiet", "-b", "topic")
    inner = commit("b.rb" => "1")
    git("checkout", "--quiet", "main")
    second = commit("a.rb" => "2", "README.md" => "x")
    git("merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic")
    merge = git("rev-parse", "HEAD")
    commits = range("#{first}..HEAD").commits
    assert_equal [[second, first, false], [merge, second, true]],
                 commits.map { |each| [each.id, each.base, each.merge?] }
    assert_equal [first, "Merge topic", %w[b.rb]],
                 [range("#{first}..HEAD").base.id, commits.last.title, range("#{first}..").paths(commits.last)]
    assert_equal %w[README.md a.rb], range("#{first}..HEAD").paths(commits.first)
    # main has a commit that the topic lacks. The range has the topic's own commits, and begins where the topic did.
    assert_equal [[inner], first], [range("main~1..topic").commits.map(&:id), range("main~1..topic").base.id]
  end

  # The bytes of a file in another encoding, and a user with settings of his own.
  def test_a_patch_applies
    commit("a.txt" => "\xE9\n".b * 9, "old.rb" => "1\n2\n3\n")
    last = commit("a.txt" => "#{"\xE9\n" * 4}\xEA\n#{"\xE9\n" * 4}".b, "b.bin" => "\0\xFF".b, "old.rb" => nil,
                  "new.rb" => "1\n2\n3\n")
    %w[noprefix=true context=0 renames=false submodule=log mnemonicPrefix=true].each do |setting|
      git("config", *"diff.#{setting}".split("="))
    end
    found = range("HEAD~1..HEAD")
    path = File.join(@root, "it.diff")
    found.write_patch(found.commits.first, path)
    assert_includes File.binread(path), "\n+\xEA\n".b
    git("checkout", "--quiet", "--detach", "HEAD~1")
    git("apply", "--index", path)
    assert_equal git("rev-parse", "#{last}^{tree}"), git("write-tree")
    gone = found.commits.first.dup.tap { |commit| commit.id = "0" * 40 }
    assert_match(/\Aits patch can't be written: /, assert_raises(Pitwall::CannotMeasure) do
      found.write_patch(gone, path)
    end.message)
    assert_raises(Pitwall::CannotMeasure) { found.paths(gone) }
  end

  def test_ranges_that_are_refused
    commit("a.rb" => "1")
    commit("a.rb" => "2")
    commit("a.rb" => "3")
    ["HEAD", "a...b", "..", "HEAD~1...HEAD"].each do |text|
      assert_match(/two dots/, refusal(Pitwall::UsageError, text))
    end
    assert_match(/\Anope: no such commit in .*git fetch/, refusal(Pitwall::UsageError, "nope..HEAD"))
    assert_match(/no commits in it\z/, refusal(Pitwall::UsageError, "HEAD..HEAD"))
    assert_match(/did you mean HEAD~1\.\.HEAD\?/, refusal(Pitwall::UsageError, "HEAD..HEAD~1"))
    git("checkout", "--quiet", "--orphan", "other")
    commit("a.rb" => "4")
    assert_match(/no history in common/, refusal(Pitwall::UsageError, "main..other"))
    shallow = File.join(@root, "shallow")
    git("clone", "--quiet", "--depth", "2", "--branch", "main", "file://#{@repo}", shallow)
    assert_match(/this clone is shallow/, refusal(Pitwall::UsageError, "HEAD~2..HEAD", dir: shallow))
    git("fetch", "--quiet", "--depth", "1", "origin", "other", dir: shallow)
    assert_match(/are missing here; this clone is shallow/,
                 refusal(Pitwall::CannotMeasure, "FETCH_HEAD..HEAD", dir: shallow))
  end

  def test_what_files_can_change
    documents = %w[README.md doc/measuring.md CHANGELOG LICENSE-MIT img/a.PNG .github/workflows/ci.yml .gitlab-ci.yml
                   NEWS.txt doc/history.adoc]
    assert_empty Reach.reaching(documents)
    code = %w[a.rb lib/template.md Gemfile.lock ext/x/y.c config/a.yml .ruby-version data.txt news.rb benchmark/text.md
              .gitattributes package.json src/history.c security.yml views/news.html.erb changes.sql license.lock
              README.md.erb notice-1.2.rb]
    assert_equal code, Reach.reaching(code, script: "benchmark/x.rb")
    # All sides run the working tree's benchmark file; a file that it names is measured.
    assert_equal %w[README.md], Reach.reaching(%w[benchmark/x.rb README.md], script: "benchmark/x.rb",
                                                                            words: "parse(File.read('../README.md'))")
  end
end
