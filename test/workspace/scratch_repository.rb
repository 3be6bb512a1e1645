# frozen_string_literal: true

require "digest"
require "fileutils"
require "find"
require "open3"
require "tmpdir"
require_relative "../support/command_line"
require "pitwall/workspace"

# Gives each test a git repository and a cache folder.
module ScratchRepository
  RUBY = RbConfig.ruby
  IDENTITY = { "GIT_AUTHOR_NAME" => "a", "GIT_AUTHOR_EMAIL" => "a@example.invalid", "GIT_COMMITTER_NAME" => "a",
               "GIT_COMMITTER_EMAIL" => "a@example.invalid",
               "GIT_CONFIG_GLOBAL" => File::NULL, "GIT_CONFIG_NOSYSTEM" => "1" }.freeze

  def setup
    super
    @root = File.realpath(Dir.mktmpdir("pitwall-workspace-test-"))
    @repo = File.join(@root, "shop")
    Dir.mkdir(@repo)
    @cache = File.join(@root, "cache")
    @steps = []
    git("init", "--quiet", "--initial-branch=main")
  end

  def teardown
    FileUtils.rm_rf(@root)
    super
  end

  def git(*words, dir: @repo)
    out, status = Open3.capture2e(IDENTITY, "git", "-c", "protocol.file.allow=always", *words, chdir: dir)
    assert_predicate status, :success?, "git #{words.join(" ")}: #{out}"
    out.strip
  end

  # Writes files. nil removes a file.
  def write(files = {}, dir: @repo, **more)
    files.merge(more).each do |name, text|
      path = File.join(dir, name)
      next FileUtils.rm_rf(path) if text.nil?

      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
    end
  end

  def commit(files = {}, dir: @repo, **more)
    write(files, dir: dir, **more)
    git("add", "--all", dir: dir)
    git("commit", "--quiet", "--allow-empty", "-m", "change", dir: dir)
    git("rev-parse", "HEAD", dir: dir)
  end

  def side(**settings) = Pitwall::Workspace::Side.new(**settings)

  # Opens a workspace and yields its subjects.
  def subjects(*sides, dir: @repo, environment: clean_environment, **settings)
    Pitwall::Workspace.open(dir: dir, place: @cache, environment: environment, on_step: ->(text) { @steps << text },
                            **settings) do |workspace|
      yield workspace.subjects(sides), workspace
    end
  end

  def subject(one, **settings)
    subjects(one, **settings) { |list| yield list.first }
  end

  def clean_environment = ENV.to_h.merge(CommandLine::CLEAN) { nil }.compact

  # The output of a subject's process.
  def run_subject(subject, *words)
    words = [*subject.ruby, *subject.requires.flat_map { |path| ["-r", path] },
             *(words.empty? ? [subject.script] : words)]
    out, status = Open3.capture2e(CommandLine::CLEAN.merge(subject.env), *words, chdir: subject.dir)
    assert_predicate status, :success?, out
    out
  end

  def run_command(subject)
    out, status = Open3.capture2e(CommandLine::CLEAN.merge(subject.env), *subject.command, chdir: subject.dir)
    assert_predicate status, :success?, out
    out
  end

  # All paths below a folder, with kind, mode, content and modification time.
  def fingerprint(folder)
    Find.find(folder).sort.map do |path|
      stat = File.lstat(path)
      content = if stat.symlink? then File.readlink(path)
                elsif stat.file? then Digest::SHA256.file(path).hexdigest
                end
      [path, stat.mode, stat.ino, stat.mtime.to_r, stat.ctime.to_r, content]
    end
  end

  def failure(kind, *sides, **settings)
    error = assert_raises(kind) { subjects(*sides, **settings) { nil } }
    assert_equal 1, error.message.lines.size, error.message
    error.message
  end

  def entries(kind) = Dir[File.join(@cache, kind, "*")].reject { |path| path.end_with?(".lock", ".install") }
end
