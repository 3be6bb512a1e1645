# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../workspace/scratch_repository"
require "json"
require "stringio"
require "pitwall"
require "pitwall/cli"
require "pitwall/record/measurements"
require "pitwall/record/sample"

# `pitwall prove` in real repositories. Most comparisons are invented; a whole round measures one with counts that are
# the same each time.
class ProveTest < Minitest::Test
  include ScratchRepository

  FAST = "def make = Object.new\n"
  SLOW = "def make = 11.times { Object.new }\n"
  BENCH = "require_relative 'lib'\nPitwall.bench { |x| x.report('make') { make } }\n"

  def setup
    super
    { "user.name" => "a", "user.email" => "a@example.invalid" }.each { |name, value| git("config", name, value) }
    @environment = ENV.to_h.slice("PITWALL_CACHE", "PITWALL_DEBUG", "GIT_PREFIX", "GIT_INDEX_FILE")
    ENV.update("PITWALL_CACHE" => @cache, "PITWALL_DEBUG" => nil, "GIT_PREFIX" => nil, "GIT_INDEX_FILE" => nil)
  end

  def teardown
    %w[PITWALL_CACHE PITWALL_DEBUG GIT_PREFIX GIT_INDEX_FILE].each { |name| ENV[name] = @environment[name] }
    super
  end

  # Measure the working tree, commit, prove, rewrite the commit, check.
  def test_from_a_change_to_a_checked_commit
    commit("lib.rb" => SLOW, "x.rb" => BENCH)
    write("lib.rb" => FAST)
    status, _, err = run_pitwall("compare", "--dirty", "--pairs", "1", "--warmup", "1", "x.rb")
    assert_equal 3, status, err
    commit
    status, _, err = run_pitwall("prove", "--amend")
    assert_equal 0, status, err
    assert_match(/\Achange\n\nPitwall-Effect: make: wall .*, 1 pair, undecided$/, text_of_head)
    assert_includes text_of_head, "\nPitwall-Effect: make: objects 11 → 1, ×0.0909, exact, 1 pair, fewer\n"
    trees = %w[HEAD~1 HEAD].map { |name| git("rev-parse", "#{name}^{tree}") }
    assert_includes text_of_head, "\nPitwall-Trees: #{trees.join(" ")}\n"
    # Other words, another commit, and a working tree with another benchmark: the trees are the same.
    git("commit", "--quiet", "--amend", "-m", "Other words\n\n#{text_of_head.split("\n\n").last}")
    write("x.rb" => "raise 'not this one'")
    status, out, err = run_pitwall("prove", "--check", "HEAD")
    assert_equal 0, status, err
    assert_match(/\AThe proof of \h{10} Other words holds\n\nmake, objects allocated: holds\n  then: 11 → 1, /, out)
    assert_includes out, "! x.rb was taken as it was measured; the working tree has another\n"
    assert_match(/\Apitwall: runs pitwall compare --rev \h{40} --rev #{git("rev-parse", "HEAD")} --pairs 1 /, err)
  end

  # The proof says that it makes fewer objects, and the commit's files, rebased since, make more.
  def test_a_proof_that_does_not_hold
    commit("lib.rb" => FAST, "x.rb" => BENCH)
    base = commit("lib.rb" => SLOW)
    commit("lib.rb" => "#{FAST}#")
    measured(fewer: [11, 1])
    assert_equal 0, run_pitwall("prove", "--amend").first
    words = text_of_head
    git("reset", "--quiet", "--hard", "HEAD~2")
    write("lib.rb" => SLOW)
    git("commit", "--quiet", "--all", "-m", words)
    refute_equal base, git("rev-parse", "HEAD")
    status, out, err = run_pitwall("prove", "--check", "HEAD", "--format", "json", "--budget", "20")
    assert_equal 1, status, err
    assert_match(/ x\.rb --budget 20\.0$/, err)
    check = JSON.parse(out)
    assert_equal ["pitwall/prove-check-1", "fails", ["fails"]],
                 [*check.values_at("schema", "verdict"), check["claims"].map { |claim| claim["verdict"] }.uniq]
    assert_match(/files are others than those that were measured/, check["notes"].first)
  end

  # The second run of a gate is newer, and only confirms the first.
  def test_the_second_run_of_a_gate_is_no_proof_of_its_own
    commit("lib.rb" => SLOW, "x.rb" => BENCH)
    commit("lib.rb" => FAST)
    first = measured(fewer: [11, 1])
    again = measured(fewer: [11, 1], head: ->(head) { head["confirms"] = File.basename(first) })
    File.utime(Time.now + 5, Time.now + 5, again)
    status, _, err = run_pitwall("prove")
    assert_equal [0, "pitwall: of #{first.delete_prefix("#{@repo}/")}\n"], [status, err]
  end

  def test_the_hook_adds_what_fits
    commit("lib.rb" => SLOW)
    write("lib.rb" => FAST, "x.rb" => BENCH)
    measured(fewer: [11, 1], dirty: true)
    hook(say("words\n# comment\n"))
    assert_equal "words\n# comment\n", File.read(@message_file)
    assert_match(/no proof added: \S+ has measured other files than these/, @err)
    # Of what is staged; the benchmark itself may be left out.
    git("add", "lib.rb")
    hook(say("words\n# comment\n"))
    assert_match(/\Awords\n\nPitwall-Effect: .*\nPitwall-Command: [^\n]*\n# comment\n\z/m, File.read(@message_file))
    trees = [git("rev-parse", "HEAD^{tree}"), git("write-tree")]
    assert_includes File.read(@message_file), "Pitwall-Trees: #{trees.join(" ")}\n"
    assert_match(/x\.rb isn't committed as it was measured/, @err)
    2.times { hook(@message_file) }
    assert_equal 1, File.read(@message_file).scan("Pitwall-Trees").size
    %w[merge squash].each do |source|
      hook(say("words\n"), source)
      assert_equal ["words\n", ""], [File.read(@message_file), @err]
    end
    # An error does not keep git from committing.
    hook(File.join(@root, "none"))
    assert_match(/\Apitwall: no proof added: No such file/, @err)
  end

  def test_notes_and_formats
    commit("lib.rb" => SLOW)
    head = commit("lib.rb" => FAST)
    measured(fewer: [11, 1])
    commit("other" => "1")
    status, _, err = run_pitwall("prove", "--note", head)
    assert_equal [0, "HEAD"], [status, git("rev-parse", "--abbrev-ref", "HEAD") == "main" ? "HEAD" : ""], err
    assert_match(/^Pitwall-Effect: make: objects 11 → 1/, git("notes", "--ref=pitwall", "show", head))
    { "trailers" => /\APitwall-Effect: make: wall/, "json" => /\A\{"schema":"pitwall\/prove-1"/,
      "markdown" => /^- trees: `\h{12}` \(main\)/, "junit" => /\A<\?xml/ }.each do |format, expected|
      status, out, err = run_pitwall("prove", "--format", format)
      assert_equal 0, status, err
      assert_match expected, out
      assert_equal 0, run_pitwall("prove", "--format", format, "--out", "proof.txt").first
      assert_equal out, File.read(File.join(@repo, "proof.txt"))
    end
  end

  def test_what_cannot_be_proved
    assert_refused 2, /no comparison in \.pitwall\//
    assert_refused 2, /the repository has no commits/, "--check", "HEAD"
    assert_refused 2, /the repository has no commits/, "--amend"
    commit("lib.rb" => SLOW)
    head = commit("lib.rb" => FAST)
    assert_refused 2, /#{head[0, 10]} change: has no proof/, "--check", "HEAD"
    assert_refused 2, /has measured the files of #{head[0, 10]} change: pitwall compare --rev/, "--amend"
    undecided = measured
    assert_refused 3, /undecided, so nothing is proved/, "--amend"
    assert_refused 3, /undecided, so nothing is proved/, undecided
    write("lib.rb" => "#{FAST}\n")
    changes = measured(fewer: [11, 1], dirty: true)
    other = /has measured other files than those of \h{10} change: commit what was measured/
    assert_refused 2, other, "--amend", changes
    one_tree = measured(fewer: [11, 1], repeat: nil)
    assert_refused 2, /a commit's proof compares two revisions/, one_tree
    assert_equal 0, run_pitwall("prove", "--format", "json", one_tree).first
    assert_refused 2, /made by an older Pitwall/, measured(fewer: [11, 1], head: ->(fields) { fields.delete("repeat") })
    assert_refused 2, /lib\.rb: holds no measurements/, "lib.rb"
    assert_refused 2, /is of bench/, measured(head: ->(fields) { fields["kind"] = "bench" })
    assert_equal head, git("rev-parse", "HEAD")
  end

  def test_bad_usage
    {
      %w[--amend --note HEAD] => /--amend and --note: one at a time/, %w[--budget 3] => /--budget: is for --check/,
      %w[--amend --format json] => /--amend: leave out --format/, %w[a b] => /b: one file/,
      %w[--check HEAD --format junit] => /text and --format json/, %w[none.jsonl] => /no such file/,
      %w[--install-hook x] => /x: --install-hook takes no file/, %w[--hook] => /is for the hook/,
      %w[--check nope] => /the repository has no commits/
    }.each { |words, message| assert_refused 2, message, *words }
  end

  # A key is not needed to be signed. Nothing is changed.
  def test_a_signed_commit_is_refused
    commit("lib.rb" => SLOW)
    commit("lib.rb" => FAST)
    measured(fewer: [11, 1])
    text = git("cat-file", "commit", "HEAD").sub("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n\n")
    write("../signed" => "#{text}\n")
    git("update-ref", "HEAD", git("hash-object", "-t", "commit", "-w", File.join(@root, "signed")))
    before = git("rev-parse", "HEAD")
    assert_refused 2, /HEAD \(\h{10} change\) is signed, .*--note HEAD leaves the commit as it is/, "--amend"
    assert_equal 0, run_pitwall("prove", "--note", "HEAD").first
    assert_equal before, git("rev-parse", "HEAD")
  end

  def test_what_a_check_needs
    commit("lib.rb" => SLOW)
    commit("lib.rb" => FAST)
    measured(fewer: [11, 1])
    run_pitwall("prove", "--amend")
    git("clone", "--quiet", "--depth=1", "file://#{@repo}", File.join(@root, "shallow"), dir: @root)
    assert_refused 4, /\(\h{10}\) isn't in this repository; this clone is shallow/, "--check", "HEAD",
                   dir: File.join(@root, "shallow")
    { "Pitwall-Command: pitwall compare --rev HEAD x.rb" => /doesn't compare its two trees/,
      "Pitwall-Command: rm -rf x" => /doesn't compare its two trees/, "Pitwall-Effect: fast" => /cannot read `fast`/,
      "Pitwall-Trees: a b" => /takes two ids/ }.each do |line, message|
      text = text_of_head.lines(chomp: true).map { |each| each[/\A\S+:/] == line[/\A\S+:/] ? line : each }.join("\n")
      git("commit", "--quiet", "--allow-empty", "-m", text)
      assert_refused 5, message, "--check", "HEAD"
      git("reset", "--quiet", "HEAD~1")
    end
    text = text_of_head.sub(/(?<=^Pitwall-Command: ).*/) { |line| "#{line} --out x" }
    git("commit", "--quiet", "--amend", "-m", text)
    assert_refused 5, /doesn't compare its two trees/, "--check", "HEAD"
  end

  private

  def text_of_head = git("log", "-1", "--format=%B")

  def run_pitwall(*words, dir: @repo)
    out, err = StringIO.new, StringIO.new
    status = Dir.chdir(dir) { Pitwall::CLI.run([*words], out: out, err: err) }
    [status, out.string, err.string]
  end

  def assert_refused(expected, pattern, *words, dir: @repo)
    status, out, err = run_pitwall("prove", *words, dir: dir)
    assert_equal [expected, "", 1], [status, out, err.lines.size], "#{words} #{err}"
    assert_match pattern, err
  end

  def say(text)
    @message_file = File.join(@root, "message")
    File.write(@message_file, text)
    @message_file
  end

  def hook(path, source = "message")
    status, out, @err = run_pitwall("prove", "--hook", path, source)
    assert_equal [0, ""], [status, out]
  end

  # A file of an invented comparison: HEAD~1 against HEAD, or HEAD against the working tree.
  # @param fewer objects of both sides; nil: no decided count
  # @param head changes the file's first line
  def measured(fewer: nil, dirty: false, repeat: true, head: ->(_) {})
    @number = @number.to_i + 1
    path = File.join(@repo, ".pitwall", "#{@number}-compare.jsonl")
    write(".pitwall/.gitignore" => "*\n")
    first = { "kind" => "compare", "settings" => { "alpha" => 0.01 }, "command" => "pitwall compare x.rb", "host" => {},
              "pitwall" => "0.1.0", "repeat" => repeat && repeat_facts(dirty),
              "sides" => [{ "name" => "main", "facts" => {} },
                          { "name" => "HEAD", "facts" => dirty ? { "changes" => "uncommitted" } : {} }] }
    head.call(first)
    write_samples(Pitwall::Record::Measurements::Writer.new(path, first), fewer)
    path
  end

  def repeat_facts(dirty)
    repository = Pitwall::Workspace::Repository.at(@repo)
    content = dirty ? repository.dirty(scratch: -> { Dir.mktmpdir(nil, @root) }) : repository.revision("HEAD")
    trees = [git("rev-parse", "#{dirty ? "HEAD" : "HEAD~1"}^{tree}"), content.tree]
    blob = repository.blob(File.join(@repo, "x.rb"), "x.rb")
    { "trees" => trees, "folder" => "", "benchmark" => blob && { "path" => "x.rb", "blob" => blob },
      "listing" => repository.listing(content.tree, except: "x.rb", objects: content.extra_objects),
      "command" => "pitwall compare --rev #{trees[0]} --rev #{trees[1]} --pairs 1 --warmup 1 x.rb" }
  end

  def write_samples(writer, fewer)
    %w[main HEAD].each_with_index do |side, at|
      values = { "wall" => [100.0 + at] }
      values["objects"] = [fewer[at], fewer[at]] if fewer
      writer.add(Pitwall::Record::Sample.new(side: side, name: "make", block: 0, order: at, values: values, warmup: 1,
                                             iterations: 2, first_ns: 100, digest: nil, notes: []))
    end
    writer.finish("duration_ns" => 1_000_000)
  end
end
