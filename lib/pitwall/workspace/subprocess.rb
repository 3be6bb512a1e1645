# frozen_string_literal: true

require "tempfile"
require "pitwall/launch/process_group"

module Pitwall
  class Workspace
    # Runs programs that build a side. Each program leads a process group. All processes of the group are ended when the
    # call ends, also when an interrupt ends the call.
    # @api private
    module Subprocess
      # status: Process::Status · out, err: output as UTF-8
      Finished = Struct.new(:status, :out, :err) do
        # Whether the exit status is 0.
        #: () -> bool
        def success? = status.success?
      end

      GRACE = 2.0 # seconds between SIGTERM and SIGKILL to a group
      private_constant :GRACE

      module_function

      # Runs a program to its end.
      # @param input [String] path of the file for standard input
      # Raises SystemCallError when the program can't be started.
      #: (Array[String], dir: String, ?env: Hash[String, String?], ?input: String, **untyped) -> Process::Status
      def run(command, dir:, env: {}, input: File::NULL, **streams)
        program, *arguments = command
        # With a pair [path, name] Ruby starts the program itself. Ruby would pass a single String to a shell.
        pid = Process.spawn(env, [program, program], *arguments, in: input, chdir: dir, pgroup: true, **streams)
        _, status = Process.wait2(pid)
        status
      ensure
        ProcessGroup.finish(pid, grace: GRACE, ask: status.nil?, reaped: !status.nil?) if pid
      end

      # Runs a program to its end and returns its output as UTF-8.
      # @param input [String, nil] text for standard input
      # Raises SystemCallError when the program can't be started.
      #: (Array[String], dir: String, ?env: Hash[String, String?], ?input: String?) -> Finished
      def capture(command, dir:, env: {}, input: nil)
        Tempfile.create("pitwall-in") do |source|
          source.binmode.write(input.to_s)
          source.close
          Tempfile.create("pitwall-out") do |out|
            Tempfile.create("pitwall-err") do |err|
              status = run(command, dir: dir, env: env, input: source.path, out: out, err: err)
              texts = [out, err].map { |file| File.binread(file.path).force_encoding(Encoding::UTF_8).scrub }
              Finished.new(status, *texts)
            end
          end
        end
      end
    end
  end
end
