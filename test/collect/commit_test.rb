# frozen_string_literal: true

require "open3"
require_relative "../test_helper"
require_relative "../support/recorded_program"

# The commit in a recording's header is what git says is checked out.
class CommitTest < Minitest::Test
  include RecordedProgram

  WHO = { "GIT_AUTHOR_NAME" => "a", "GIT_AUTHOR_EMAIL" => "a@b", "GIT_COMMITTER_NAME" => "a", "GIT_COMMITTER_EMAIL" => "a@b",
          "GIT_CONFIG_GLOBAL" => File::NULL, "GIT_CEILING_DIRECTORIES" => nil }.freeze

  def git(*words, dir: "app")
    out, status = Open3.capture2e(WHO, "git", *words, chdir: file(dir))
    assert status.success?, out
    out.strip
  end

  # What Pitwall finds, in a process of its own, as the module is private.
  def around(folder)
    out, status = Open3.capture2e(RbConfig.ruby, "-r", File.join(Checkout::ROOT, "lib/pitwall/collect/commit.rb"), "-e", "p Pitwall::Collect.const_get(:Commit).checked_out", chdir: file(folder))
    assert status.success?, out
    out.strip == "nil" ? nil : out.strip.delete('"')
  end

  def repository(dir = "app", *options)
    FileUtils.mkdir_p(file("#{dir}/lib/deep"))
    git("init", "-q", "-b", "main", *options, dir: dir)
    git("commit", "-q", "--allow-empty", "-m", "one", dir: dir)
    git("rev-parse", "HEAD", dir: dir)
  end

  def test_a_branch_a_packed_one_and_none
    FileUtils.mkdir_p(file("app/lib/deep"))
    git("init", "-q", "-b", "feature/names")
    assert_nil around("app"), "no commit yet"
    head = repository
    assert_equal [head, head], [around("app"), around("app/lib/deep")]
    git("tag", "-am", "x", "v1")
    git("pack-refs", "--all")
    assert_equal head, around("app"), "packed"
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert_equal git("rev-parse", "HEAD"), around("app"), "the loose one counts"
    git("checkout", "-q", "--detach", head)
    assert_equal head, around("app"), "no branch"
  end

  def test_a_linked_worktree
    repository
    git("worktree", "add", "-q", "-b", "side", file("side"))
    git("commit", "-q", "--allow-empty", "-m", "side", dir: "side")
    side = git("rev-parse", "HEAD", dir: "side")
    refute_equal side, around("app")
    assert_equal side, around("side")
    git("pack-refs", "--all")
    assert_equal side, around("side")
  end

  def test_names_of_another_length
    head = repository("app", "--object-format=sha256")
    assert_equal [64, head], [head.size, around("app")]
  end

  def test_what_is_not_a_repository
    FileUtils.mkdir_p(file("nowhere"))
    assert_nil around("nowhere")
    FileUtils.mkdir_p(file("odd/.git"))
    ["", "ref: ../../secret\n", "ref: refs/../../secret\n", "ref: refs/heads/.invalid\n", "\0\n", "ref: refs/heads/\0\n"].each do |head|
      File.binwrite(file("odd/.git/HEAD"), head)
      File.write(file("odd/secret"), "#{"a" * 40}\n")
      assert_nil around("odd"), head.inspect
    end
    FileUtils.rm_r(file("odd/.git"))
    File.write(file("odd/.git"), "gitdir: nowhere\n")
    assert_nil around("odd"), "a submodule whose repository is gone"
  end

  def test_recordings_name_it
    head = repository
    run_program('Dir.chdir("app/lib"); record { burn(0.02) }')
    assert_equal head, Pitwall::Record.read(file("app/lib/a.pit")).segments.first.header.commit
  end
  # A server's release may be removed while it runs.
  def test_a_working_directory_that_is_gone
    run_program(%(Dir.mkdir("gone"); Dir.chdir("gone"); Dir.rmdir("../gone"); record(#{file("a.pit").dump}) { burn(0.02) }))
    assert_nil Pitwall::Record.read(file("a.pit")).segments.first.header.commit
  end
end
